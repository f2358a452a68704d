package migrate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/migrate"
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// Policies and objects that are carried over, to which each case does one thing.
const (
	cloningPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  generateExisting: true
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Namespace], names: [team-a]}}]}
    exclude: {any: [{resources: {names: [team-b]}}]}
    generate: {apiVersion: v1, kind: Secret, name: base, namespace: "{{request.object.metadata.name}}", synchronize: true, clone: {namespace: platform, name: base}}
`
	oneRulePolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
`
	listingPolicy = oneRulePolicy + `    match: {any: [{resources: {kinds: [Namespace], names: [team-a]}}]}
    generate: {namespace: "{{request.name}}", synchronize: true, cloneList: {namespace: platform, kinds: [v1/Secret], selector: {matchLabels: {a: b}}}}
`
	denyingPolicy = oneRulePolicy + `    match: {any: [{resources: {kinds: [Secret], names: [base], namespaces: [platform]}}]}
    exclude: {any: [{subjects: [{kind: User, name: ada}]}]}
    preconditions: {all: [{key: "{{request.operation}}", operator: In, value: [UPDATE]}]}
    validate: {failureAction: Enforce, message: denied, deny: {conditions: [{key: "{{request.operation}}", operator: In, value: [UPDATE, DELETE]}]}}
`
	restartingPolicy = oneRulePolicy + `    match: {any: [{resources: {kinds: [Secret], names: [base], namespaces: [platform], operations: [UPDATE]}}]}
    mutate:
      targets: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps/v1, kind: StatefulSet}, {apiVersion: apps/v1, kind: DaemonSet}]
      patchStrategicMerge: {spec: {template: {metadata: {annotations: {a: b}}}}}
`
	refreshingPolicy = oneRulePolicy + `    match: {any: [{resources: {kinds: [Secret], selector: {matchLabels: {a: b}}}}]}
    mutate:
      targets: [{apiVersion: v1, kind: Pod, namespace: "{{request.namespace}}"}]
      patchStrategicMerge: {metadata: {annotations: {a: b}}}
`
	celGenerating = `
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: p}
spec:
  evaluation: {synchronize: {enabled: true}, generateExisting: {enabled: true}, orphanDownstreamOnPolicyDelete: {enabled: true}}
  matchConstraints:
`
	celCloning = celGenerating + `    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [namespaces], resourceNames: [team-a]}]
    excludeResourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [namespaces], resourceNames: [team-b]}]
  generate: [{expression: 'generator.Apply(object.metadata.name, [resource.Get("v1", "secrets", "platform", "base")])'}]
`
	templateCloning = celGenerating + `    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [namespaces], resourceNames: [team-a]}]
  variables: [{name: source, expression: 'resource.Get("v1", "secrets", "platform", "base")'}]
  generate:
  - template:
      interpolate: cel
      value: |
        apiVersion: v1
        kind: Secret
        metadata: {name: other, namespace: (( object.metadata.name ))}
        data: (( variables.source.data ))
`
	celDenying = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [secrets], resourceNames: [base]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: platform}}
  validations: [{expression: "false", message: denied}]
`
	reflecting = `
apiVersion: v1
kind: Secret
metadata:
  namespace: platform
  name: base
  annotations:
    reflector.v1.k8s.emberstack.com/reflection-allowed: "true"
    reflector.v1.k8s.emberstack.com/reflection-allowed-namespaces: team-a
    reflector.v1.k8s.emberstack.com/reflection-auto-enabled: "true"
    reflector.v1.k8s.emberstack.com/reflection-auto-namespaces: team-a
---
apiVersion: v1
kind: Secret
metadata: {namespace: team-a, name: mirror, annotations: {reflector.v1.k8s.emberstack.com/reflects: platform/base}}
`
	replicating = `
apiVersion: v1
kind: Secret
metadata:
  namespace: platform
  name: base
  annotations:
    replicator.v1.mittwald.de/replicate-to: team-a
    replicator.v1.mittwald.de/replication-allowed: "true"
    replicator.v1.mittwald.de/replication-allowed-namespaces: "team-.*"
---
apiVersion: v1
kind: Secret
metadata: {namespace: team-b, name: copied, annotations: {replicator.v1.mittwald.de/replicate-from: platform/base}}
`
	everySecret = "[Secret], names: [base], namespaces: [platform]"
	byOperation = `deny: {conditions: [{key: "{{request.operation}}", operator: In, value: [UPDATE, DELETE]}]}`
	certificate = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {namespace: platform, name: c}
spec: {secretName: base, secretTemplate: {annotations: {reflector.v1.k8s.emberstack.com/reflection-allowed: "true", reflector.v1.k8s.emberstack.com/reflection-auto-enabled: "true"}}}
`
	policyException = `
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {namespace: a, name: b}
spec: {exceptions: [{policyName: p}]}
`
)

// reasonsOf are all that a result gives, with where they are.
func reasonsOf(t *testing.T, input string) (all []ir.Reason) {
	t.Helper()
	var in migrate.Input
	require.NoError(t, in.Read("test", strings.NewReader(input)))
	require.Empty(t, in.Unread)
	result := migrate.Translate(in)
	for _, rule := range result.Rules {
		all = append(append(all, rule.Notes...), rule.Off)
		if rule.Reload != nil {
			all = append(all, rule.Reload.Off)
		}
	}
	for _, section := range result.Sections {
		all = append(append(all, section.Notes...), section.Off)
	}
	for _, left := range result.Left {
		all = append(all, left.Why)
	}
	if len(result.Others) > 0 {
		all = append(all, ir.Because(ir.OtherJob))
	}
	file, err := result.Render()
	require.NoError(t, err)
	parsedFrom(t, string(file))
	for _, reason := range all { // what is said is in the file
		if reason.Cause != ir.OtherJob {
			require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(string(file), "#", "")), " "), reason.String())
		}
	}
	return all
}

// Each reason is given where its cause is, names it, and is not given without. A case
// puts the cause, new, where old is in a policy that has it not.
func TestEveryReasonIsGivenForItsCauseAlone(t *testing.T) {
	for cause, test := range map[ir.Cause]struct{ input, old, new, value string }{
		ir.OtherJob:             {cloningPolicy, "kind: Secret", "kind: Role", ""},
		ir.DataInPolicy:         {cloningPolicy, "clone: {namespace: platform, name: base}", "data: {a: b}", ""},
		ir.NoSource:             {cloningPolicy, "clone: {namespace: platform, name: base}", "clone: {}", ""},
		ir.NotAName:             {cloningPolicy, "clone: {namespace: platform, name: base}", "clone: {namespace: platform, name: '{{source}}'}", "{{source}}"},
		ir.NoSourceNamespace:    {cloningPolicy, "clone: {namespace: platform, name: base}", "clone: {name: base}", ""},
		ir.EveryObjectCloned:    {listingPolicy, ", selector: {matchLabels: {a: b}}", "", "platform"},
		ir.WildcardLabels:       {listingPolicy, "{a: b}", "{a: 'b*'}", ""},
		ir.NotRecognised:        {celCloning, "generator.Apply", "!generator.Apply", ""},
		ir.OwnNamespaceOnly:     {cloningPolicy, "kind: ClusterPolicy\nmetadata: {name: p}", "kind: Policy\nmetadata: {namespace: a, name: p}", ""},
		ir.TargetByVariable:     {cloningPolicy, "{{request.object.metadata.name}}", "{{request.object.metadata.labels.a}}", `"{{request.object.metadata.labels.a}}"`},
		ir.TargetElsewhere:      {cloningPolicy, "{{request.object.metadata.name}}", "team-z", "team-z"},
		ir.TargetIsSources:      {cloningPolicy, "{{request.object.metadata.name}}", "platform", "platform"},
		ir.SynchronizeOff:       {cloningPolicy, "synchronize: true", "synchronize: false", ""},
		ir.SystemSource:         {cloningPolicy, "clone: {namespace: platform", "clone: {namespace: kube-system", ""},
		ir.TriggerNotNamespace:  {cloningPolicy, "kinds: [Namespace]", "kinds: [Pod]", ""},
		ir.NeverTriggered:       {cloningPolicy, "names: [team-a]", "names: [team-a], operations: [DELETE]", ""},
		ir.WhoMadeNamespace:     {cloningPolicy, "names: [team-a]}", "names: [team-a]}, clusterRoles: [tenant]", ""},
		ir.SelectorNeverMatches: {cloningPolicy, "names: [team-a]", "namespaceSelector: {matchLabels: {a: b}}", ""},
		ir.NamesAndNamespaces:   {cloningPolicy, "names: [team-a]", "names: [team-a], namespaces: [team-b]", ""},
		ir.MatchesNothing:       {cloningPolicy, "match: {any: [{resources: {kinds: [Namespace], names: [team-a]}}]}", "match: {}", ""},
		ir.SeveralUnderAll:      {cloningPolicy, "match: {any: [", "match: {all: [{resources: {kinds: [Namespace], names: [team-b]}}, ", ""},
		ir.ExcludesByMore:       {cloningPolicy, "names: [team-b]", "annotations: {a: b}", ""},
		ir.ExcludesEverything:   {cloningPolicy, "names: [team-b]", "kinds: [Namespace]", ""},
		ir.LabelTwice: {
			celCloning, "  generate:", "    namespaceSelector: {matchLabels: {a: b}}\n    objectSelector: {matchLabels: {a: c}}\n  generate:", "a",
		},
		ir.LabelsNegated:      {cloningPolicy, "names: [team-b]", "selector: {matchLabels: {a: b, c: d}}", ""},
		ir.ExcludedByName:     {cloningPolicy, "names: [team-b]", "names: [team-b], selector: {matchLabels: {a: b}}", "team-b"},
		ir.Preconditions:      {cloningPolicy, "exclude:", "preconditions: {all: [{key: a, operator: Equals, value: b}]}\n    exclude:", ""},
		ir.OnlyUnder:          {cloningPolicy, "exclude:", "context: [{name: a}]\n    exclude:", "context"},
		ir.AdmissionOff:       {cloningPolicy, "generateExisting: true", "generateExisting: true\n  admission: false", ""},
		ir.NoOperationLeft:    {restartingPolicy, "mutate:", "preconditions: {all: [{key: \"{{request.operation}}\", operator: Equals, value: DELETE}]}\n    mutate:", ""},
		ir.Exempted:           {cloningPolicy + policyException, "policyName: p", "policyName: 'p*'", "p*"},
		ir.KindsLeft:          {listingPolicy, "kinds: [v1/Secret]", "kinds: [v1/Secret, v1/ServiceAccount]", "v1/ServiceAccount"},
		ir.AnnotationsToo:     {templateCloning, templateCloning, celCloning, ""},
		ir.ExistingNamespaces: {cloningPolicy, "generateExisting: true", "generateExisting: false", ""},
		ir.OrphanFirst:        {celCloning, ", orphanDownstreamOnPolicyDelete: {enabled: true}", "", ""},
		ir.TemplateMetadata:   {templateCloning, "name: other,", "name: other, labels: {a: b},", ""},
		ir.ByAnnotations:      {denyingPolicy, "names: [base]", "annotations: {a: b}", ""},
		ir.ByWildcard:         {denyingPolicy, "names: [base]", "names: ['base-*']", "base-*"},
		ir.ByNameAndLabels:    {denyingPolicy, "names: [base]", "names: [base], selector: {matchLabels: {a: b}}", ""},
		ir.EveryNamespace:     {denyingPolicy, everySecret, "[Secret]", ""},
		ir.EveryObject:        {denyingPolicy, everySecret, "[Secret], namespaces: [platform]", "platform"},
		ir.ConditionsMore:     {denyingPolicy, byOperation, "deny: {conditions: [{key: a, operator: Equals, value: b}]}", ""},
		ir.NoGuardedOperation: {denyingPolicy, byOperation, strings.Replace(byOperation, "[UPDATE, DELETE]", "CONNECT", 1), ""},
		ir.Overrides:          {denyingPolicy, "message: denied", "message: denied, failureActionOverrides: [{action: Audit}]", ""},
		ir.CertainUsers:       {denyingPolicy, "namespaces: [platform]}", "namespaces: [platform]}, subjects: [{kind: User, name: bob}]", ""},
		ir.OverrideMay:        {cloningPolicy, cloningPolicy, denyingPolicy, ""},
		ir.ExcludesObjects:    {denyingPolicy, "{subjects: [{kind: User, name: ada}]}", "{resources: {names: [base]}}", ""},
		ir.ClusterRoleCounts:  {denyingPolicy, "{subjects: [{kind: User, name: ada}]}", "{clusterRoles: [a]}", ""},
		ir.RoleExempts:        {denyingPolicy, "{subjects: [{kind: User, name: ada}]}", "{roles: ['a:b']}", "a:b"},
		ir.WildcardSubject:    {denyingPolicy, "name: ada", "name: 'ada*'", "User"},
		ir.GuardsMore:         {celDenying, "resources: [secrets]", "resources: [secrets, pods]", ""},
		ir.CELAsksMore:        {celDenying, `expression: "false"`, `expression: "object.metadata.name == 'a'"`, ""},
		ir.EveryOfThatName:    {cloningPolicy + "---" + denyingPolicy, ", namespaces: [platform]", "", "Secret"},
		ir.ProtectedAlready: {
			denyingPolicy + "---" + strings.Replace(denyingPolicy, "name: p}", "name: q}", 1), "{kind: User, name: ada}", "{kind: User, name: bob}", "ClusterPolicy p, rule r",
		},
		ir.GuardedNotCloned:  {denyingPolicy, ", namespaces: [platform]", "", "Secret base"},
		ir.NoStamp:           {restartingPolicy, "annotations: {a: b}", "labels: {a: b}", ""},
		ir.MutatesInCEL:      {celDenying, "kind: ValidatingPolicy\nmetadata: {name: p}\nspec:", "kind: MutatingPolicy\nmetadata: {name: p}\nspec:\n  evaluation: {mutateExisting: {enabled: true}}", ""},
		ir.KindNotRestarted:  {restartingPolicy, "targets: [", "targets: [{apiVersion: batch/v1, kind: CronJob}, ", "CronJob"},
		ir.TargetConditions:  {restartingPolicy, "kind: Deployment", "kind: Deployment, context: [{name: a}]", ""},
		ir.TargetNamespace:   {restartingPolicy, "kind: Deployment", "kind: Deployment, namespace: shop", "shop"},
		ir.SelectorsDiffer:   {restartingPolicy, "kind: Deployment", "kind: Deployment, selector: {matchLabels: {a: b}}", ""},
		ir.RestartsConsumers: {cloningPolicy, cloningPolicy, restartingPolicy, ""},
		ir.RestartByName:     {restartingPolicy, "kind: Deployment", "kind: Deployment, namespace: shop, name: web", "Deployment shop/web"},
		ir.RestartOneByName:  {strings.Replace(restartingPolicy, "names: [base]", "selector: {matchLabels: {a: b}}", 1), "kind: Deployment", "kind: Deployment, name: web", "Deployment web"},
		ir.WhoChanges:        {restartingPolicy, "mutate:", "exclude: {any: [{clusterRoles: [a]}]}\n    mutate:", ""},
		ir.ExemptsTogether:   {denyingPolicy, "exclude: {any: [", "exclude: {all: [{clusterRoles: [a]}, ", ""},
		ir.ForEach:           {cloningPolicy, "generate: {", "generate: {foreach: [{kind: Secret}], ", ""},
		ir.MessageLeft:       {denyingPolicy, "message: denied", "message: 'denied {{request.name}}'", ""},
		ir.NotOnUpdate:       {restartingPolicy, "operations: [UPDATE]", "operations: [CREATE]", ""},
		ir.KindsNotRestarted: {restartingPolicy, ", {apiVersion: apps/v1, kind: DaemonSet}", "", "DaemonSet"},
		ir.PodLabels:         {refreshingPolicy, "kind: Pod", "kind: Pod, selector: {matchLabels: {a: b}}", ""},
		ir.ChangesElsewhere:  {refreshingPolicy, "{{request.namespace}}", "shop", ""},
		ir.SectionActs:       {restartingPolicy, restartingPolicy, refreshingPolicy, ""},
		ir.OtherSelector: {
			cloningPolicy + "---" + strings.ReplaceAll(restartingPolicy, ", namespaces: [platform]", ""), "DaemonSet}]",
			"DaemonSet}]\n      patchStrategicMerge: {spec: {template: {metadata: {annotations: {a: b}}}}}\n  - name: s\n" +
				"    match: {any: [{resources: {kinds: [Secret], names: [base]}}]}\n    mutate:\n" +
				"      targets: [{kind: Deployment, selector: {matchLabels: {a: b}}}]", "",
		},
		ir.RestartsNotCloned: {restartingPolicy, ", namespaces: [platform]", "", "Secret base"},
		ir.NotAGlob:          {replicating, "replicate-to: team-a", `replicate-to: "(?!a).*"`, "(?!a).*"},
		ir.Repeats:           {replicating, "replicate-to: team-a", `replicate-to: "team-[0-9]+"`, "team-[0-9]+"},
		ir.OuterAlternatives: {replicating, "replicate-to: team-a", `replicate-to: "team-a|b"`, "team-a|b"},
		ir.OverlapLeft:       {strings.ReplaceAll(reflecting, "reflection-allowed-namespaces: team-a", `reflection-allowed-namespaces: "team-.*"`), "reflection-auto-namespaces: team-a", `reflection-auto-namespaces: ".*-prod"`, "team-*"},
		ir.BadSelector:       {replicating, "replicate-to: team-a", `replicate-to-matching: "a in b"`, `"a in b"`},
		ir.KubeToo:           {replicating, "replicate-to: team-a", `replicate-to: ".*"`, "kubernetes-replicator"},
		ir.UnknownAnnotation: {replicating, "replicator.v1.mittwald.de/replicate-to", "replicator.v1.mittwald.de/new: a\n    replicator.v1.mittwald.de/replicate-to", "replicator.v1.mittwald.de/new"},
		ir.TwoWriters:        {cloningPolicy, cloningPolicy, replicating, "Secret/team-b/copied"},
		ir.NotAllowed:        {reflecting, `reflection-allowed: "true"`, `reflection-allowed: "false"`, "reflector.v1.k8s.emberstack.com/reflection-auto-enabled"},
		ir.NowhereLeft:       {reflecting, "reflection-auto-namespaces: team-a", "reflection-auto-namespaces: team-b", ""},
		ir.BadReference:      {replicating, "replicate-from: platform/base", "replicate-from: base", "replicator.v1.mittwald.de/replicate-from"},
		ir.SourceNotRead:     {reflecting, "reflects: platform/base", "reflects: platform/another", ""},
		ir.SourceForbids:     {replicating, `replication-allowed: "true"`, `replication-allowed: "false"`, "replicator.v1.mittwald.de/replication-allowed"},
		ir.SourceForbidsIn:   {replicating, `"team-.*"`, `"shop"`, "replicator.v1.mittwald.de/replication-allowed-namespaces"},
		ir.OwnersLeft:        {replicating, "replicator.v1.mittwald.de/replicate-to", "replicator.v1.mittwald.de/keep-owner-references: \"true\"\n    replicator.v1.mittwald.de/replicate-to", ""},
		ir.CopiedOnce:        {replicating, "replicator.v1.mittwald.de/replicate-to", "replicator.v1.mittwald.de/replicate-once: \"true\"\n    replicator.v1.mittwald.de/replicate-to", "replicator.v1.mittwald.de/replicate-once"},
		ir.NamespaceNotSaid:  {certificate, "namespace: platform, ", "", "Secret base"},
		ir.OtherKind:         {certificate, "kind: Certificate", "kind: Cluster", ""},
	} {
		t.Run(string(cause), func(t *testing.T) {
			given := func(r ir.Reason) bool { return r.Cause == cause }
			require.Contains(t, test.input, test.old)
			if without := test.input; cause != ir.Exempted {
				require.False(t, slices.ContainsFunc(reasonsOf(t, without), given), "without its cause: %s", without)
			}
			with := reasonsOf(t, strings.Replace(test.input, test.old, test.new, 1))
			at := slices.IndexFunc(with, given)
			require.GreaterOrEqual(t, at, 0, "with its cause: %v", with)
			if test.value != "" {
				require.True(t, slices.ContainsFunc(with, func(r ir.Reason) bool { return given(r) && r.Value == test.value }), "%v", with)
			}
		})
	}
}

// advice is not given by itself.
var advice = []ir.Cause{ir.SayWhereTo, ir.OwnersAsk, ir.RefreshAdvice, ir.AllowAll}

func TestEveryCauseHasACase(t *testing.T) {
	require.NotEmpty(t, advice)
	parse := func(file string) *ast.File {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		return parsed
	}
	tried := map[string]bool{}
	ast.Inspect(parse("reasons_test.go"), func(node ast.Node) bool {
		if selector, is := node.(*ast.SelectorExpr); is {
			if of, is := selector.X.(*ast.Ident); is && of.Name == "ir" {
				tried[selector.Sel.Name] = true
			}
		}
		return true
	})
	for _, declaration := range parse("ir/causes.go").Decls {
		constants, is := declaration.(*ast.GenDecl)
		if !is || constants.Tok != token.CONST {
			continue
		}
		for _, constant := range constants.Specs {
			name := constant.(*ast.ValueSpec).Names[0].Name
			require.True(t, tried[name], "no case gives the reason %s", name)
		}
	}
}
