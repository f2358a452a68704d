package reload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// What failed in a later stage does not stay there while its fix is in the canary.
func TestASupersededRevisionIsTakenBackWhereItFails(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "over", func(s *staged) {
		held(s)
		s.selects, s.stages = "include: [over-a]", ", {name: half, namespaces: {include: [over-b, over-c, over-d]}, approval: true}"
	})
	e.Namespaces("over-b", "over-c")
	s.begin()
	for _, namespace := range []string{s.canary, "over-b", "over-c"} {
		s.serving(namespace, "web", 1, lab.ByEnv("shared", "used"))
	}
	s.ready()
	before := s.Stamps("over-c")
	s.edit("2")
	s.shows("2", waits)
	s.runs("web")
	s.HasClone("over-b", "shared", map[string]string{"used": "2", "unused": "1"})
	s.Restarted("over-c", before, "Deployment/web")
	s.rolledOut("over-c", "web")
	s.isCrashing("over-b", "web")
	s.verdict("2", revisions.Held)
	e.Namespaces("over-d") // gets what its stage has
	s.HasClone("over-d", "shared", map[string]string{"used": "2", "unused": "1"})
	s.SecondLater()
	for namespace, name := range map[string]string{"over-c": "beside", "over-d": "web"} { // younger than the stage
		e.Create(namespace, lab.Deployment(namespace, name, 1, lab.ByEnv("shared", "used")))
		s.isCrashing(namespace, name)
	}
	s.shows("2", func(e revisions.Evidence) bool { return slices.Equal(e.Broken, []string{"over-d"}) })
	s.ready()
	s.edit("3")
	for _, namespace := range []string{"over-b", "over-d"} {
		s.HasClone(namespace, "shared", map[string]string{"used": "1", "unused": "1"})
	}
	s.HasClone(s.canary, "shared", map[string]string{"used": "3", "unused": "1"})
	s.HasClone("over-c", "shared", map[string]string{"used": "2", "unused": "1"}) // its consumer runs, so nobody is restarted without need
	s.stays()
}

// asBefore gives the objects of a delivery under way the form that releases without
// evidence wrote.
func (s *staged) asBefore() {
	s.Helper()
	secrets := s.Admin.CoreV1().Secrets(lab.Namespace)
	for _, number := range []string{"1", "2"} {
		one := s.Revision(s.prefix, number)
		for _, key := range []string{mark.Protocol, mark.Evidence, mark.ChangedKeys, mark.Passed, mark.Soaked, mark.Waited, mark.Lacked} {
			delete(one.Annotations, key)
		}
		if number == "2" {
			long := "2026-01-02T03:04:05Z"
			one.Annotations[mark.StageSince], one.Annotations["headwater.dev/healthy-since"] = long, long
			one.Annotations["headwater.dev/consumers-known"] = one.ResourceVersion
		}
		_, err := secrets.Update(s.Context(), one, metav1.UpdateOptions{})
		require.NoError(s, err)
	}
	clone := s.Get(s.canary, "shared")
	clone.Annotations["headwater.dev/consumers"] = "2 Healthy"
	_, err := s.Admin.CoreV1().Secrets(s.canary).Update(s.Context(), clone, metav1.UpdateOptions{})
	require.NoError(s, err)
}

// An upgrade in the middle of two deliveries: what the earlier release knew of their
// consumers, and since when, does not count.
func TestAnUpgradeInADeliveryBelievesNothing(t *testing.T) {
	e := newEnv(t)
	// The first fails after the upgrade, and the second in the time between.
	all := map[string]*staged{"runs": nil, "fails": nil, "failed": nil}
	rules := ""
	for name := range all {
		s := newStaged(e, "up"+name, func(s *staged) { s.soak = "1h" })
		s.selects = fmt.Sprintf("include: [%s-a]", s.prefix)
		all[name], rules = s, rules+s.rule()
	}
	h := e.StartAlone(rules)
	for _, s := range all {
		s.begun()
		s.serving(s.canary, "web", 1, lab.ByEnv("shared", "used"))
		s.h = h
	}
	all["runs"].ready()
	for _, s := range all {
		s.edit("2")
		s.shows("2", waits)
	}
	for _, s := range all {
		s.runs("web")
		s.shows("2", func(e revisions.Evidence) bool { return ran(e) && !waits(e) })
	}
	e.Settled(h) // nothing of it is on its way
	h.Kill()
	for _, s := range all {
		s.verdict("2", revisions.Delivering)
		s.asBefore()
	}
	all["failed"].failing(false)
	mark := e.Cluster.Mark()
	// That one may pass; the others do not before they fail.
	e.StartAlone(strings.Replace(rules, all["runs"].rule(), strings.Replace(all["runs"].rule(), "soak: 1h", "soak: 5s", 1), 1))
	all["failed"].verdict("2", revisions.Held)
	all["runs"].shows("2", func(e revisions.Evidence) bool { return ran(e) && e.Look != "" })
	all["fails"].shows("2", ran)
	all["fails"].failing(false)
	all["fails"].verdict("2", revisions.Held)
	for _, name := range []string{"fails", "failed"} {
		all[name].stays()
	}
	s := all["runs"]
	s.has("2")
	s.verdict("2", revisions.Delivered)
	require.Equal(t, "2 Healthy", s.Get(s.canary, "shared").Annotations["headwater.dev/consumers"], "nothing is written for its sake")
	for _, write := range e.Writes(mark) {
		require.False(t, write.Resource == "secrets" && write.Namespace == s.canary, "%+v", write)
	}
}
