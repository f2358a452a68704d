package deploy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	deployDir = "../../deploy"
	chartDir  = deployDir + "/helm/headwater"
	namespace = "headwater-system"
)

// helmBinary is the tool that this module asks for, built by the first test: `go tool` would
// ignore GOFLAGS, and compile all of it once more.
var helmBinary = sync.OnceValues(func() (string, error) {
	const folder = "../../bin/"
	build := exec.Command("go", "build", "-o", folder, "tool")
	// The Makefile's flags, whatever those of this test: what `make compile-tests` compiled is in Go's cache.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build helm: %w: %s", err, out)
	}
	return filepath.Abs(folder + "helm")
})

// helm runs it in an otherwise empty home.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary, err := helmBinary()
	require.NoError(t, err)
	var out, problems bytes.Buffer
	command := exec.CommandContext(t.Context(), binary, args...)
	command.Env = append(os.Environ(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return problems.String(), err
	}
	return out.String(), nil
}

func template(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm(t, append([]string{"template", "headwater", chartDir, "--namespace", namespace}, args...)...)
	require.NoError(t, err, out)
	return out
}

// requireFile compares a file with what it should be, or, with UPDATE=1,
// writes it.
func requireFile(t *testing.T, path, want string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	found, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(found), "%s is not what it is made from: make chart UPDATE=1", path)
}

var byHelm = regexp.MustCompile(`(?m)^ *(app\.kubernetes\.io/managed-by: Helm|helm\.sh/chart: .*|# Source: .*)\n`)

var betweenDocuments = regexp.MustCompile(`\n+---\n`)

// plain is what helm renders, without what says that helm did.
func plain(rendered string) string {
	rendered = strings.TrimPrefix(byHelm.ReplaceAllString(rendered, ""), "---\n")
	return strings.TrimRight(betweenDocuments.ReplaceAllString(rendered, "\n---\n"), "\n") + "\n"
}

func TestTheChartIsLinted(t *testing.T) {
	for _, values := range []string{chartDir + "/values.yaml", "testdata/values-everything.yaml", "testdata/values-least.yaml"} {
		out, err := helm(t, "lint", "--strict", "--namespace", namespace, "--values", values, chartDir)
		require.NoError(t, err, out)
	}
}

func TestTheChartRendersWhatItDid(t *testing.T) {
	for _, name := range []string{"everything", "least"} {
		t.Run(name, func(t *testing.T) {
			requireFile(t, "testdata/"+name+".golden.yaml", template(t, "--values", "testdata/values-"+name+".yaml"))
		})
	}
}

// The end-to-end tests run with these permissions.
func TestTheChartGrantsNoSecretsIfTheValuesSaySo(t *testing.T) {
	requireFile(t, "testdata/configmaps.golden.yaml", template(t, "--show-only", "templates/rbac.yaml", "--set", "rbac.secrets=false"))
	require.Contains(t, template(t, "--set", "rbac.secrets=false"), "- --without-secrets\n")
	given := template(t, "--show-only", "templates/rbac.yaml", "--set", "rbac.secrets=false", "--set", "config.protect.certificates.secretName=given")
	require.Contains(t, given, "resourceNames: [given]\n  verbs: [get, list, watch]\n")
}

// The end-to-end tests upgrade to this one.
func TestTheChartGuardsTheMetrics(t *testing.T) {
	requireFile(t, "testdata/metrics-auth.golden.yaml", template(t, "--skip-tests", "--set", "metrics.auth=true",
		"--set", "guard.writers={system:serviceaccount:default:deployer}"))
}

func TestTheKustomizeBaseIsWhatTheChartRenders(t *testing.T) {
	const header = "# Generated from the Helm chart by `make chart UPDATE=1`. Change the chart instead.\n"
	rendered := plain(template(t, "--skip-tests"))
	requireFile(t, deployDir+"/kustomize/headwater.yaml", header+rendered)

	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), deployDir+"/kustomize")
	require.NoError(t, err)
	text, err := built.AsYaml()
	require.NoError(t, err)
	base, chart := objects(t, string(text)), objects(t, rendered)
	require.Contains(t, base, "Namespace//headwater-system")
	delete(base, "Namespace//headwater-system")
	require.Equal(t, chart, base)
}

func TestTheChartSetsTheGarbageCollector(t *testing.T) {
	for sentence, test := range map[string]struct {
		set  []string
		want map[string]string
	}{
		"by default, from the memory limit":       {nil, map[string]string{"GOGC": "40", "GOMEMLIMIT": "460MiB"}},
		"from a limit of a fraction":              {[]string{"resources.limits.memory=1.5Gi"}, map[string]string{"GOGC": "40", "GOMEMLIMIT": "1382MiB"}},
		"from a limit in decimal units":           {[]string{"resources.limits.memory=500M"}, map[string]string{"GOGC": "40", "GOMEMLIMIT": "429MiB"}},
		"from a limit in bytes":                   {[]string{"resources.limits.memory=536870912"}, map[string]string{"GOGC": "40", "GOMEMLIMIT": "460MiB"}},
		"without a limit":                         {[]string{"resources.limits=null"}, map[string]string{"GOGC": "40"}},
		"without resources":                       {[]string{"resources=null"}, map[string]string{"GOGC": "40"}},
		"unless the values set it themselves":     {[]string{"extraEnv[0].name=GOGC", "extraEnv[0].value=off"}, map[string]string{"GOGC": "off", "GOMEMLIMIT": "460MiB"}},
		"unless they set the limit of the memory": {[]string{"extraEnv[0].name=GOMEMLIMIT", "extraEnv[0].value=1GiB"}, map[string]string{"GOGC": "40", "GOMEMLIMIT": "1GiB"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var args []string
			for _, value := range test.set {
				args = append(args, "--set", value)
			}
			require.Equal(t, test.want, goEnv(t, template(t, args...)))
		})
	}
}

func TestEveryWayToRunHeadwaterCollectsGarbageAlike(t *testing.T) {
	manifest, err := os.ReadFile(deployDir + "/kustomize/headwater.yaml")
	require.NoError(t, err)
	env := goEnv(t, string(manifest))
	require.Equal(t, map[string]string{"GOGC": "40", "GOMEMLIMIT": "460MiB"}, env)
	for _, file := range []string{deployDir + "/Dockerfile", "../lab/headwater.go"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, []string{"GOGC=" + env["GOGC"]}, regexp.MustCompile(`GOGC=\w+`).FindAllString(string(content), -1), file)
	}
}

// goEnv returns the variables of Go's runtime that the Deployment in a manifest sets.
func goEnv(t *testing.T, manifest string) map[string]string {
	t.Helper()
	deployment := object[appsv1.Deployment](t, manifest, "Deployment/"+namespace+"/headwater")
	env := map[string]string{}
	for _, one := range deployment.Spec.Template.Spec.Containers[0].Env {
		if strings.HasPrefix(one.Name, "GO") {
			require.NotContains(t, env, one.Name, "the API server refuses to apply a variable twice")
			env[one.Name] = one.Value
		}
	}
	return env
}

// The overlay that deploy/README.md shows builds, with the patch it shows too.
func TestTheOverlayOfTheManualBuilds(t *testing.T) {
	manual, err := os.ReadFile(deployDir + "/README.md")
	require.NoError(t, err)
	between := func(from, to string) string {
		_, rest, found := strings.Cut(string(manual), from)
		require.True(t, found, from)
		text, _, found := strings.Cut(rest, to)
		require.True(t, found, to)
		return text
	}
	files := filesys.MakeFsInMemory()
	for _, name := range []string{"kustomization.yaml", "namespace.yaml", "headwater.yaml"} {
		content, err := os.ReadFile(deployDir + "/kustomize/" + name)
		require.NoError(t, err)
		require.NoError(t, files.WriteFile("/deploy/kustomize/"+name, content))
	}
	require.NoError(t, files.WriteFile("/overlay/headwater.yaml", []byte(between("cat > overlay/headwater.yaml <<EOF\n", "EOF\n"))))
	require.NoError(t, files.WriteFile("/overlay/kustomization.yaml",
		[]byte(between("cat > overlay/kustomization.yaml <<EOF\n", "EOF\n")+"patches:\n"+between("\npatches:\n", "```"))))
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/overlay")
	require.NoError(t, err)
	text, err := built.AsYaml()
	require.NoError(t, err)
	policy := object[networkingv1.NetworkPolicy](t, string(text), "NetworkPolicy/"+namespace+"/headwater")
	require.Equal(t, apiServerPorts+", 443 53 53, 9090", egress(policy))
}

func TestThePermissionsAreThoseOfTheChart(t *testing.T) {
	namespaceFile, err := os.ReadFile(deployDir + "/kustomize/namespace.yaml")
	require.NoError(t, err)
	rbac := template(t, "--show-only", "templates/serviceaccount.yaml", "--show-only", "templates/rbac.yaml", "--show-only", "templates/policies.yaml")
	requireFile(t, deployDir+"/rbac.yaml", "# What Headwater needs to run: its namespace, its service account, only the\n"+
		"# permissions that its modules use, and the policies that guard and limit it. Generated\n"+
		"# from the Helm chart by `make chart UPDATE=1`. Change the chart instead.\n"+string(namespaceFile)+"---\n"+plain(rbac))
}

// Not in crds/ of the chart: Helm never upgrades what is there.
func TestTheKindInstalledByHandIsThatOfTheChart(t *testing.T) {
	crd := template(t, "--show-only", "templates/crd.yaml")
	requireFile(t, deployDir+"/crd.yaml", "# The kind RuleStatus. Generated from the Helm chart by `make chart UPDATE=1`. Change\n"+
		"# the chart instead.\n"+plain(crd))
	require.NotContains(t, template(t, "--set", "crds.install=false"), "CustomResourceDefinition\n")
}

// objects are those of a stream of YAML documents, by kind, namespace and name.
func objects(t *testing.T, stream string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for document := range strings.SplitSeq(stream, "\n---\n") {
		document += "\n" // which may end a block of text
		var object map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(document), &object), document)
		if object == nil {
			continue
		}
		var known struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &known))
		key := known.Kind + "/" + known.Metadata.Namespace + "/" + known.Metadata.Name
		require.NotContains(t, all, key)
		all[key] = object
	}
	return all
}

func TestMistakesInValuesAreNamed(t *testing.T) {
	for sentence, test := range map[string]struct{ set, want string }{
		"a value that there is not":       {"replicas=3", "replicas"},
		"a number that is none":           {"replicaCount=many", "replicaCount"},
		"a level that there is not":       {"logLevel=loud", "logLevel"},
		"a digest that is none":           {"image.digest=latest", "digest"},
		"a version of another day":        {"config.apiVersion=headwater.dev/v9", "apiVersion"},
		"a rule without a source":         {"config.rules[0].name=lonely", "source"},
		"a key that no rule has":          {"config.rules[0].snyc.onConflict=Skip", "snyc"},
		"a duration without a unit":       {"config.rules[0].reload.debounce=5", "debounce"},
		"an interval without a unit":      {"metrics.serviceMonitor.interval=thirty", "interval"},
		"a part of metrics there is not":  {"metrics.enabled=true", "enabled"},
		"a port that nobody can have":     {"networkPolicy.apiServerPorts={70000}", "apiServerPorts"},
		"fewer replicas than none at all": {"replicaCount=-1", "replicaCount"},
		"an account without a name":       {"serviceAccount.name=", "serviceAccount"},
		"a mount without a place":         {"extraVolumeMounts[0].name=x", "mountPath"},
		"a volume without a name":         {"extraVolumes[0].emptyDir.medium=Memory", "extraVolumes"},
		"a token without its key":         {"metrics.auth=true,metrics.authorization.credentials.name=token", "key"},
		"TLS that nobody serves":          {"metrics.verifyTLS=true", "need metrics.auth"},
		"a token that nobody asks for":    {"metrics.authorization.type=Bearer", "need metrics.auth"},
		"a page for everybody in the pod": {"page=true", "page needs metrics.auth"},
		"a certificate that nobody reads": {"tls.secretName=mine", "needs metrics.auth"},
		"an unknown version of TLS":       {"tls.minVersion=1.3", "minVersion"},
		"a CA that nobody makes":          {"metrics.auth=true,metrics.verifyTLS=true", "needs a rule that protects"},
		"a CA that policies do not need":  {protecting + ",config.protect.engine=Policy,metrics.auth=true,metrics.verifyTLS=true", "needs a rule that protects"},
		"a PodMonitor without a token":    {"metrics.auth=true,metrics.podMonitor.enabled=true", "needs metrics.authorization"},
		"two monitors":                    {"metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true", "twice"},
		"a security context that is none": {"securityContext=strict", "securityContext"},
		"a guard that is neither":         {"guard.enabled=null", "missing property 'enabled'"},
		"an account that is null":         {"serviceAccount.name=null", "missing property 'name'"},
		"a section that is null":          {"networkPolicy=null", "missing property 'networkPolicy'"},
		"a configuration that is null":    {"config=null", "missing property 'config'"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			problem, err := helm(t, "template", "headwater", chartDir, "--set", test.set)
			require.Error(t, err)
			require.Contains(t, problem, test.want)
		})
	}
}

// Helm reports a mistake in the values as early as Headwater reports one in the
// file. The schema of the configuration is the last property of the file, so that
// everything after it is generated.
func TestTheConfigurationIsCheckedByItsOwnSchema(t *testing.T) {
	const file, last = chartDir + "/values.schema.json", "\n    \"config\": "
	service, err := os.ReadFile("../../configs/headwater.schema.json")
	require.NoError(t, err)
	schema, err := os.ReadFile(file)
	require.NoError(t, err)
	chart, _, found := strings.Cut(string(schema), last)
	require.True(t, found)
	indented := strings.ReplaceAll(strings.TrimSpace(string(service)), "\n", "\n    ")
	requireFile(t, file, chart+last+indented+"\n  }\n}\n")
}

func TestEveryValueHasASchema(t *testing.T) {
	values, err := os.ReadFile(chartDir + "/values.yaml")
	require.NoError(t, err)
	schema, err := os.ReadFile(chartDir + "/values.schema.json")
	require.NoError(t, err)
	var set, properties map[string]any
	require.NoError(t, yaml.Unmarshal(values, &set))
	require.NoError(t, yaml.Unmarshal(schema, &properties))
	known, ok := properties["properties"].(map[string]any)
	require.True(t, ok)
	delete(known, "global") // helm's own
	for name := range set {
		require.Contains(t, known, name)
		delete(known, name)
	}
	require.Empty(t, known, "in the schema, but not in values.yaml")
}

// Helm takes a value out that somebody sets to null. What then remains must not pass for a choice:
// only texts, lists and maps that are empty by default can be left out.
func TestNoChoiceCanBeLeftOut(t *testing.T) {
	type schema struct {
		Required   []string
		Properties map[string]schema
	}
	var known schema
	var values map[string]any
	for file, into := range map[string]any{"values.yaml": &values, "values.schema.json": &known} {
		content, err := os.ReadFile(chartDir + "/" + file)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(content, into))
	}
	values["config"] = map[string]any{"apiVersion": "", "kind": ""}
	var walk func(path string, is schema, values map[string]any)
	walk = func(path string, is schema, values map[string]any) {
		for key, value := range values {
			switch value := value.(type) {
			case bool, float64:
				require.Contains(t, is.Required, key, path)
			case map[string]any:
				if one := is.Properties[key]; len(one.Properties) > 0 && len(value) > 0 {
					require.Contains(t, is.Required, key, path)
					walk(path+"."+key, one, value)
				}
			}
		}
	}
	walk("", known, values)
}

func TestThePackageHoldsItsFiles(t *testing.T) {
	dir := t.TempDir()
	out, err := helm(t, "package", chartDir, "--destination", dir)
	require.NoError(t, err, out)
	packages, err := filepath.Glob(dir + "/headwater-*.tgz")
	require.NoError(t, err)
	require.Len(t, packages, 1)
	everything := []string{"template", "headwater", packages[0], "--namespace", namespace, "--values", "testdata/values-everything.yaml"}
	rendered, err := helm(t, everything...)
	require.NoError(t, err, rendered)
	require.Equal(t, template(t, "--values", "testdata/values-everything.yaml"), rendered)
}
