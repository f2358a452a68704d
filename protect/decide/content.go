package decide

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// judgeContent denies a request that gives a source of rule content that fails the
// rule's checks. That also denies users that the rule allows: they must not break
// all clones by mistake. A request that leaves the content as it is passes,
// so that a source that is invalid already can lose its finalizers.
func judgeContent(request Request, rule spec.Rule, world World) (denied Verdict, isDenied bool) {
	if rule.Validator == nil || !setsContent(request, rule) {
		return Verdict{}, false
	}
	var problems []string
	for _, problem := range rule.Validator.Problems(request.New.Content, world.Now()) {
		problems = append(problems, problem.String())
	}
	if len(problems) == 0 {
		return Verdict{}, false
	}
	return refuse(rule, ReasonInvalidContent, invalidContentMessage(rule, request.Object(), strings.Join(problems, "; "))), true
}

func invalidContentMessage(rule spec.Rule, object, problems string) string {
	return fmt.Sprintf("headwater: %s would have content that fails the checks of rule %q: %s", object, rule.Name, problems)
}

// setsContent reports whether the object is a source of rule after the request,
// with content that this source did not have before.
func setsContent(request Request, rule spec.Rule) bool {
	ref, known := request.Ref()
	if !known || request.New == nil || request.Operation == spec.Delete || !rule.Selects(ref, request.New.Labels) {
		return false
	}
	before := request.Old
	return request.Operation == spec.Create || before == nil || !rule.Selects(ref, before.Labels) || !sameData(before.Content, request.New.Content)
}

func sameData(a, b object.Content) bool {
	return maps.EqualFunc(a.Data, b.Data, bytes.Equal) && maps.EqualFunc(a.BinaryData, b.BinaryData, bytes.Equal)
}
