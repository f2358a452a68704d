package pins_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/register"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Clusters hold objects by these names, and with these labels and annotations:
// another version must find its work again.
func TestNames(t *testing.T) {
	var out strings.Builder
	for _, name := range []struct{ what, is string }{
		{"label of clones", mark.CloneLabel},
		{"rule of a clone", mark.Rule},
		{"source of a clone", mark.Source},
		{"UID of the source", mark.SourceUID},
		{"version of the source", mark.SourceVersion},
		{"place of a clone", mark.Target},
		{"fate of a clone without a rule", mark.OnRuleRemoved},
		{"baseline of a workload", mark.Baseline},
		{"last restart", mark.RestartedAt},
		{"restarts before", mark.RestartedBefore},
		{"stamp of a template", mark.RestartedFor},
		{"restart before the stamp", mark.RestartedAfter},
		{"checked restart", mark.RestartChecked},
		{"refresh of a pod", mark.RefreshedFor},
		{"confirmed refresh of a pod", mark.RefreshConfirmed},
		{"option: reload", mark.Reload},
		{"option: reload on", mark.ReloadOn},
		{"option: keys", mark.ReloadKeys},
		{"options", strings.Join(mark.WishAnnotations(), " ")},
		{"age of the digest key", mark.InstalledAt},
		{"fields that rule RULE sets", mark.SetBy("RULE")},
		{"field manager", mark.FieldManager},
		{"field manager of the fields that rule RULE sets", mark.TargetManager("RULE")},
		{"sender of Events", events.ReportingController},
		{"rule of an Event", progress.EventRule},
		{"Lease", leader.LeaseName},
		{"Secret of the digest key", digestkey.SecretName},
		{"Secret of the certificate", protectspec.CertificateSecret},
		{"ConfigMap of the configuration", config.ConfigMapName},
		{"its key", config.ConfigMapKey},
		{"Secret of the last valid configuration", config.LastValidName},
		{"ConfigMap of approvals", survey.ApprovalsName},
		{"ConfigMap of requests about deliveries", survey.DeliveriesName},
		{"ConfigMap of removals", survey.RemovalsName},
		{"ConfigMap of what is registered", register.RegisteredConfigMap},
		{"ConfigMap of proofs", prove.ProofsConfigMap},
		{"its key of the last attempt", prove.LastTried},
		{"service account of attempts", prove.ProverAccount},
		{"Service of the webhook", protectspec.ServiceName},
		{"webhook configuration", protectspec.ConfigurationName},
		{"owner of what is registered", kube.OwnerName},
		{"policies and bindings", strings.Join(manifests.PolicyNames(), " ")},
		{"path of reviews", protectspec.ReviewPath},
		{"path of the page", page.Path},
		{"configuration", config.APIVersion},
	} {
		require.NotEmpty(t, name.is, name.what)
		_, _ = fmt.Fprintf(&out, "%s: %s\n", name.what, name.is)
	}
	clone := metav1.ObjectMeta{}
	mark.Stamp(&clone, mark.Clone{
		Rule: "RULE", Source: object.Ref{Kind: object.Secret, Namespace: "NAMESPACE", Name: "NAME"},
		SourceUID: "UID", SourceVersion: "VERSION", OnRuleRemoved: "FATE",
	})
	_, _ = fmt.Fprintf(&out, "a clone: labels %v, annotations %v\n", clone.Labels, clone.Annotations)
	first := time.Date(2026, time.January, 2, 3, 4, 5, 678_000_000, time.UTC)
	at, before := mark.Restarts{first, first.Add(30 * time.Second), first.Add(2 * time.Minute)}.Format()
	_, _ = fmt.Fprintf(&out, "restarts: %s before %s\n", at, before)
	requireGolden(t, "names.txt", out.String())
}

// ours are names in the product's own words: its domain and what has its name as
// a prefix, labels and annotations of others, and paths that it serves or calls.
var ours = []*regexp.Regexp{
	regexp.MustCompile(`([a-z0-9-]+\.)*headwater\.dev(/[A-Za-z0-9._-]*)?`),
	regexp.MustCompile(`^headwater([.-][a-z]+)*$`),
	regexp.MustCompile(`^([a-z0-9-]+\.)+[a-z]+/[A-Za-z0-9._-]*$`),
	regexp.MustCompile(`^/[a-z]+(/[a-z]*)*$`),
}

// All such constants of the code, so that none is lost that TestNames does not
// know. Texts for people are left out: they have blanks.
func TestConstantNames(t *testing.T) {
	s, found := sourceOf(t), map[string]bool{}
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			expr, ok := node.(ast.Expr)
			if !ok {
				return true
			}
			value := s.info.Types[expr].Value
			if value == nil || value.Kind() != constant.String {
				return true
			}
			text := constant.StringVal(value)
			for _, name := range ours {
				if !strings.ContainsAny(text, " \n") {
					for _, match := range name.FindAllString(text, -1) {
						found[match] = true
					}
				}
			}
			return false // its parts are no names
		})
	}
	require.Greater(t, len(found), 40)
	requireGolden(t, "constants.txt", strings.Join(slices.Sorted(maps.Keys(found)), "\n"))
}
