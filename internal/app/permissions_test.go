package app

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/protect"
	"github.com/headwater-k8s/headwater/reload"
	"github.com/headwater-k8s/headwater/sync"
)

const (
	rbacFile       = "../../deploy/rbac.yaml"
	everythingFile = "../../test/deploy/testdata/everything.golden.yaml"
	leastFile      = "../../test/deploy/testdata/least.golden.yaml"
	configMapsFile = "../../test/deploy/testdata/configmaps.golden.yaml"
	tableFile      = "../../deploy/RBAC.md"
	tableHead      = "<!-- made from the modules by UPDATE=1 go test ./internal/app -->\n"
)

// asked is what one module asks for.
type asked struct {
	module      string
	permissions []kube.Permission
}

// asks lists what each module asks for with the configuration of content, and
// what the process asks for itself.
func asks(t *testing.T, settings Settings, content []byte) []asked {
	t.Helper()
	loaded, err := config.Parse("headwater.yaml", content)
	require.NoError(t, err)
	all := []asked{{"the process", ownPermissions(settings)}}
	for name, module := range map[string]fx.Option{"sync": sync.Module, "protect": protect.Module, "reload": reload.Module} {
		var got struct {
			fx.In

			Permissions []kube.Permission `group:"permissions"`
		}
		clients := fakeClients(t)
		clients.Scope = settings.scope()
		graph := fx.New(core(settings, &Started{Config: loaded}, clients, zap.NewNop()), module, fx.Populate(&got))
		require.NoError(t, graph.Err())
		all = append(all, asked{name, got.Permissions})
	}
	order := []string{"sync", "protect", "reload", "the process"}
	slices.SortFunc(all, func(a, b asked) int {
		return cmp.Compare(slices.Index(order, a.module), slices.Index(order, b.module))
	})
	return all
}

// right is one verb on one resource: what RBAC grants piece by piece.
type right struct{ group, resource, name, namespace, verb string }

func rights(permission kube.Permission) []right {
	var all []right
	for _, verb := range permission.Verbs {
		all = append(all, right{permission.Group, permission.Resource, permission.Name, permission.Namespace, verb})
	}
	return all
}

// manifest is what of a rendered object is read here.
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Rules []rbacv1.PolicyRule
	Data  map[string]string
}

func chartManifests(t *testing.T, file string) []manifest {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	var all []manifest
	for {
		var one manifest
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, one)
	}
}

// granted reads what the service account headwater is granted.
func granted(all []manifest) []right {
	var rights []right
	for _, role := range all {
		if role.Name == "headwater" && (role.Kind == "ClusterRole" || role.Kind == "Role") {
			for _, rule := range role.Rules {
				rights = append(rights, pieces(rule, role.Namespace)...)
			}
		}
	}
	return rights
}

func pieces(rule rbacv1.PolicyRule, namespace string) []right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				for _, verb := range rule.Verbs {
					all = append(all, right{group, resource, name, namespace, verb})
				}
			}
		}
	}
	return all
}

// covers reports whether a grant is enough for what is asked: a grant without
// a name or a namespace is one for all of them.
func covers(grant, asked right) bool {
	return grant.group == asked.group && grant.resource == asked.resource && grant.verb == asked.verb &&
		(grant.name == "" || grant.name == asked.name) && (grant.namespace == "" || grant.namespace == asked.namespace)
}

// guarded are settings with which the process asks for all that it may.
func guarded() Settings {
	settings := testSettings()
	settings.MetricsAuth = true
	return settings
}

const cloning = `
apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- {name: cloned, source: {kind: ConfigMap, namespace: platform, name: cloned}, sync: {}}
reload: {optIn: false}
`

const allOfConfigMaps = `
apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- {name: cloned, source: {kind: ConfigMap, namespace: platform, name: cloned}, sync: {}, protect: {}, reload: {}}
reload: {optIn: false}
`

// withoutSecrets are settings of an installation that may not read Secrets.
func withoutSecrets() Settings {
	settings := testSettings()
	settings.WithoutSecrets = true
	return settings
}

// Least privilege, from both sides.
func TestWhatIsGrantedIsWhatTheModulesAskFor(t *testing.T) {
	everything := chartManifests(t, everythingFile)
	i := slices.IndexFunc(everything, func(one manifest) bool { return one.Kind == "ConfigMap" && one.Name == "headwater" })
	require.NotEqual(t, -1, i)
	for sentence, test := range map[string]struct {
		rendered []manifest
		settings Settings
		config   string
	}{
		"by default":                       {chartManifests(t, rbacFile), testSettings(), string(configs.Sample())},
		"with metrics.auth and more kinds": {everything, guarded(), everything[i].Data["headwater.yaml"]},
		"to clone and no more":             {chartManifests(t, leastFile), withoutSecrets(), cloning},
		"all of it for ConfigMaps alone":   {chartManifests(t, configMapsFile), withoutSecrets(), allOfConfigMaps},
	} {
		t.Run(sentence, func(t *testing.T) {
			grants := granted(test.rendered)
			var wanted []right
			for _, module := range asks(t, test.settings, []byte(test.config)) {
				for _, permission := range module.permissions {
					require.NotEmpty(t, permission.For, "%s does not say what it needs %s for", module.module, permission.Resource)
					wanted = append(wanted, rights(permission)...)
				}
			}
			for _, asked := range wanted {
				require.True(t, slices.ContainsFunc(grants, func(grant right) bool { return covers(grant, asked) }), "not granted: %+v", asked)
			}
			for _, grant := range grants {
				// As wide as it is granted, not wider.
				require.Contains(t, wanted, grant, "granted, but no module asks for it")
			}
		})
	}
}

func TestTheTableOfPermissionsIsCurrent(t *testing.T) {
	want := table(asks(t, guarded(), configs.Sample()))
	document, err := os.ReadFile(tableFile)
	require.NoError(t, err)
	before, after, found := strings.Cut(string(document), tableHead)
	require.True(t, found, "%s has lost the line that its table begins after", tableFile)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(tableFile, []byte(before+tableHead+want), 0o644))
		return
	}
	require.Equal(t, want, after, "write it again: UPDATE=1 go test ./internal/app")
}

func table(all []asked) string {
	var out strings.Builder
	fmt.Fprintln(&out, "\n| module | resource | verbs | where | for |\n|---|---|---|---|---|")
	for _, module := range all {
		lines := make([]string, 0, len(module.permissions))
		for _, p := range module.permissions {
			lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s | %s |",
				module.module, resource(p), strings.Join(slices.Sorted(slices.Values(p.Verbs)), ", "), where(p), p.For))
		}
		slices.Sort(lines)
		fmt.Fprintln(&out, strings.Join(lines, "\n"))
	}
	return out.String()
}

func resource(p kube.Permission) string {
	if p.Group == "" {
		return p.Resource
	}
	return p.Resource + "." + p.Group
}

func where(p kube.Permission) string {
	switch {
	case p.Name != "" && p.Namespace != "":
		return "`" + p.Name + "` of its own namespace"
	case p.Name == testSettings().Namespace:
		return "its own"
	case p.Name != "":
		return "`" + p.Name + "`"
	case p.Namespace != "":
		return "its own namespace"
	default:
		return "everywhere"
	}
}
