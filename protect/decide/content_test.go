package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/validate"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func TestDecideOnContentThatFailsTheChecks(t *testing.T) {
	checks, err := validate.Compile(validate.Checks{{Key: "level", Is: validate.Regex, Pattern: "debug|info"}})
	require.NoError(t, err)
	with := func(level string, change ...func(*object.Full)) *object.Full {
		return protecttest.NewSecret(append(change, func(o *object.Full) { o.Content.Data = map[string][]byte{"level": []byte(level)} })...)
	}
	finalizing := func(o *object.Full) { o.Finalizers = []string{"example.com/f"} }
	const canary = protecttest.Canary
	for name, test := range map[string]struct {
		rule    func(*spec.Rule)
		request decide.Request
		reason  decide.Reason
		denied  bool
	}{
		"an allowed user breaks it":                      {nil, update(alice, with("info"), with(canary)), decide.ReasonInvalidContent, true},
		"an allowed user repairs it":                     {nil, update(alice, with(canary), with("info")), decide.ReasonExempt, false},
		"an allowed user removes the key":                {nil, update(alice, with("info"), protecttest.NewSecret()), decide.ReasonInvalidContent, true},
		"an allowed user creates it":                     {nil, create(alice, with(canary)), decide.ReasonInvalidContent, true},
		"anybody else is not allowed in the first place": {nil, update("mallory", with("info"), with(canary)), decide.ReasonProtected, true},
		"a finalizer leaves an invalid source":           {nil, update("mallory", with(canary, finalizing), with(canary)), decide.ReasonNoProtectedChange, false},
		"an allowed user labels an invalid source":       {nil, update(alice, with(canary), with(canary, labelled(map[string]string{"a": "b"}))), decide.ReasonExempt, false},
		"Headwater writes it":                            {nil, update(protecttest.HeadwaterUser, with("info"), with(canary)), decide.ReasonByHeadwater, false},
		"an allowed user deletes it":                     {nil, remove(alice), decide.ReasonExempt, false},
		"updates are not protected": {
			func(r *spec.Rule) { r.Operations = []spec.Operation{spec.Create} }, update("mallory", with("info"), with(canary)), decide.ReasonInvalidContent, true,
		},
		"updates are protected as deletions only": {
			func(r *spec.Rule) { r.Operations = []spec.Operation{spec.Delete} }, update("mallory", with("info"), with(canary)), decide.ReasonInvalidContent, true,
		},
		"a rule that warns": {
			func(r *spec.Rule) { r.Mode = spec.Warn }, update(alice, with("info"), with(canary)), decide.ReasonInvalidContent, false,
		},
		"another object": {
			func(r *spec.Rule) { r.Source.Name = "other" }, update(alice, with("info"), with(canary)), decide.ReasonNotProtected, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rule := protecttest.BlogRule(func(r *spec.Rule) { r.Validator, r.Allow = checks, spec.Allow{Users: []string{alice}} })
			if test.rule != nil {
				test.rule(&rule)
			}
			verdict := decide.Decide(test.request, rules.NewSet(rule), newWorld())
			require.Equal(t, test.reason, verdict.Reason)
			require.Equal(t, !test.denied, verdict.Allowed)
			require.NotContains(t, verdict.Message+verdict.Warning, canary)
			if test.reason == decide.ReasonInvalidContent {
				require.Regexp(t, `^headwater: Secret platform/blogsecret would have content that fails the checks of rule "blogsecret": `+
					`key "level" (does not match its pattern|is missing)$`, verdict.Message)
			}
		})
	}
}

// Adding the label that a rule selects by makes the content that of a source.
func TestAnObjectWithInvalidContentCannotBecomeASource(t *testing.T) {
	checks, err := validate.Compile(validate.Checks{{Key: "level", Is: validate.YAML}})
	require.NoError(t, err)
	rule := protecttest.SelectingRule(func(r *spec.Rule) { r.Validator, r.Allow = checks, spec.Allow{Users: []string{alice}} })
	before, after := protecttest.NewSecret(), protecttest.NewSecret(labelled(map[string]string{"share": "yes"}))
	require.Equal(t, decide.ReasonInvalidContent, decide.Decide(update(alice, before, after), rules.NewSet(rule), newWorld()).Reason)
	require.Equal(t, decide.ReasonExempt, decide.Decide(update(alice, after, before), rules.NewSet(rule), newWorld()).Reason)
}
