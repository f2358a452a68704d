package migrate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// The keys of a rule that are written, in their order. What is left out has its
// default.
type (
	ruleKeys struct {
		Name    string       `yaml:"name"`
		Source  sourceKeys   `yaml:"source,flow"`
		Sync    *syncKeys    `yaml:"sync,omitempty"`
		Protect *protectKeys `yaml:"protect,omitempty"`
		Reload  *reloadKeys  `yaml:"reload,omitempty"`
	}
	sourceKeys struct {
		Kind                 string        `yaml:"kind"`
		Namespace            string        `yaml:"namespace"`
		Name                 string        `yaml:"name,omitempty"`
		Selector             *selectorKeys `yaml:"selector,omitempty,flow"`
		AllowSystemNamespace bool          `yaml:"allowSystemNamespace,omitempty"`
	}
	selectorKeys struct {
		MatchLabels      map[string]string `yaml:"matchLabels,omitempty,flow"`
		MatchExpressions []expressionKeys  `yaml:"matchExpressions,omitempty"`
	}
	expressionKeys struct {
		Key      string   `yaml:"key"`
		Operator string   `yaml:"operator"`
		Values   []string `yaml:"values,omitempty,flow"`
	}
	syncKeys struct {
		Namespaces      *namespacesKeys `yaml:"namespaces,omitempty"`
		Target          *targetKeys     `yaml:"target,omitempty"`
		OnConflict      string          `yaml:"onConflict"`
		OnSourceDeleted string          `yaml:"onSourceDeleted,omitempty"`
	}
	namespacesKeys struct {
		Include  []string      `yaml:"include,omitempty,flow"`
		Exclude  *[]string     `yaml:"exclude,omitempty,flow"`
		Selector *selectorKeys `yaml:"selector,omitempty"`
	}
	targetKeys struct {
		Name       string   `yaml:"name,omitempty"`
		CopyLabels []string `yaml:"copyLabels,omitempty,flow"`
	}
	protectKeys struct {
		Operations []protectspec.Operation `yaml:"operations,omitempty,flow"`
		Mode       protectspec.Mode        `yaml:"mode,omitempty"`
		Message    string                  `yaml:"message,omitempty"`
		Clones     protectspec.Clones      `yaml:"clones,omitempty"`
		Allow      allowKeys               `yaml:"allow"`
	}
	allowKeys struct {
		ClusterRoles    []string      `yaml:"clusterRoles,flow"`
		Users           []string      `yaml:"users,omitempty,flow"`
		Groups          []string      `yaml:"groups,omitempty,flow"`
		ServiceAccounts []accountKeys `yaml:"serviceAccounts,omitempty"`
	}
	accountKeys struct {
		Namespace string `yaml:"namespace"`
		Name      string `yaml:"name"`
	}
	reloadKeys struct {
		Action    string         `yaml:"action"`
		Workloads *workloadsKeys `yaml:"workloads,omitempty"`
	}
	workloadsKeys struct {
		Selector *selectorKeys `yaml:"selector"`
	}
)

// Render is the configuration file, with a comment on each thing that is not as
// it was.
func (r Result) Render() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, header, r.counts())
	for i, step := range r.steps() {
		comment(&out, fmt.Sprintf("%d. ", i+1), step)
	}
	out.WriteString("\napiVersion: headwater.dev/v1alpha1\nkind: Config\n\n")
	switch {
	case slices.ContainsFunc(r.Rules, func(rule migratedRule) bool { return rule.Off.None() }):
		out.WriteString("rules:\n")
	case len(r.Rules) == 0 && len(r.Sections) > 0:
		out.WriteString("rules: []\n")
	default:
		out.WriteString("rules: [] # take the [] away with the comment signs\n\n")
	}
	for i, rule := range r.Rules {
		if i > 0 {
			out.WriteString("\n")
		}
		if err := rule.render(&out); err != nil {
			return nil, err
		}
	}
	if err := r.renderSections(&out); err != nil {
		return nil, err
	}
	var left, unread []string
	for _, l := range r.Left {
		left = append(left, l.From+": "+l.Why.String())
	}
	for _, u := range r.Unread {
		unread = append(unread, u.At+": "+u.Why)
	}
	list(&out, "Not carried over", left)
	list(&out, "Could not be read", unread)
	list(&out, "Do other jobs, and stay with Kyverno", r.Others)
	return out.Bytes(), nil
}

func list(out *bytes.Buffer, title string, all []string) {
	if len(all) > 0 {
		out.WriteString("\n# " + title + ":\n")
	}
	for _, text := range all {
		comment(out, "- ", text)
	}
}

func (rule migratedRule) render(out *bytes.Buffer) error {
	comment(out, "", "From "+strings.Join(rule.From, "; ")+".")
	for _, note := range rule.Notes {
		comment(out, "- ", note.String())
	}
	if !rule.Off.None() {
		comment(out, "- ", "NOT IN FORCE: "+rule.Off.String())
	}
	text, err := encode([]ruleKeys{rule.keys()})
	if err != nil {
		return fmt.Errorf("write rule %s: %w", rule.Name, err)
	}
	switch {
	case !rule.Off.None():
		out.WriteString(commented(text, ""))
	case rule.Reload != nil && !rule.Reload.Off.None():
		section, err := encode(map[string]*reloadKeys{"reload": reloadKeysOf(*rule.Reload)})
		if err != nil {
			return fmt.Errorf("write rule %s: %w", rule.Name, err)
		}
		out.WriteString(text)
		comment(out, "  ", "NOT IN FORCE: "+rule.Reload.Off.String())
		out.WriteString(commented(section, "  "))
	default:
		out.WriteString(text)
	}
	return nil
}

func encode(value any) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return out.String(), encoder.Close()
}

func commented(text, indent string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(indent + "# " + line)
	}
	return out.String()
}

// width is where comments are broken.
const width = 108

// comment writes text as lines of comment, the first after bullet.
func comment(out *bytes.Buffer, bullet, text string) {
	indent := ""
	if strings.TrimSpace(bullet) == "" {
		indent, bullet = bullet, ""
	}
	line := indent + "# " + bullet
	blank := true
	for word := range strings.FieldsSeq(text) {
		switch {
		case blank:
			line += word
		case len(line)+1+len(word) > width:
			out.WriteString(line + "\n")
			line = indent + "# " + strings.Repeat(" ", len(bullet)) + word
		default:
			line += " " + word
		}
		blank = false
	}
	out.WriteString(line + "\n")
}

func (rule migratedRule) keys() ruleKeys {
	keys := ruleKeys{Name: rule.Name, Source: sourceOf(rule.Source)}
	if rule.Sync != nil {
		keys.Sync = syncKeysOf(*rule.Sync)
	}
	if rule.Protect != nil {
		keys.Protect = protectKeysOf(*rule.Protect)
	}
	if rule.Reload != nil && rule.Reload.Off.None() {
		keys.Reload = reloadKeysOf(*rule.Reload)
	}
	return keys
}

func sourceOf(s rules.Source) sourceKeys {
	return sourceKeys{
		Kind: string(s.Kind), Namespace: s.Namespace, Name: s.Name, Selector: selectorKeysOf(s.Selector),
		AllowSystemNamespace: s.AllowSystemNamespace,
	}
}

func selectorKeysOf(s *metav1.LabelSelector) *selectorKeys {
	if ir.PlainSelector(s) == nil {
		return nil
	}
	keys := &selectorKeys{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		keys.MatchExpressions = append(keys.MatchExpressions, expressionKeys{e.Key, string(e.Operator), e.Values})
	}
	return keys
}

func namespaceKeys(w ir.Where) namespacesKeys {
	keys := namespacesKeys{Include: w.Names, Selector: selectorKeysOf(w.Selector)}
	exclude := append([]string{}, w.Exclude...)
	if !slices.Equal(exclude, []string{"kube-*"}) && (len(exclude) > 0 || w.ReachesKube()) {
		keys.Exclude = &exclude
	}
	return keys
}

func syncKeysOf(s ir.SyncPart) *syncKeys {
	keys := &syncKeys{OnConflict: string(syncspec.ConflictAdoptIfEqual)}
	if s.OnSourceDeleted == syncspec.Delete {
		keys.OnSourceDeleted = string(syncspec.Delete)
	}
	if namespaces := namespaceKeys(s.Where); namespaces.Include != nil || namespaces.Exclude != nil || namespaces.Selector != nil {
		keys.Namespaces = &namespaces
	}
	target := targetKeys{Name: s.TargetName}
	if s.CopyLabels {
		target.CopyLabels = []string{"*"}
	}
	if target.Name != "" || s.CopyLabels {
		keys.Target = &target
	}
	return keys
}

func protectKeysOf(p ir.ProtectPart) *protectKeys {
	keys := &protectKeys{Message: p.Message, Allow: allowKeys{ClusterRoles: p.Allow.ClusterRoles, Users: p.Allow.Users, Groups: p.Allow.Groups}}
	if !slices.Equal(p.Operations, protectspec.Operations()) {
		keys.Operations = p.Operations
	}
	if p.Mode != protectspec.Enforce {
		keys.Mode = p.Mode
	}
	if p.Clones == protectspec.Deny {
		keys.Clones = p.Clones
	}
	for _, account := range p.Allow.ServiceAccounts {
		keys.Allow.ServiceAccounts = append(keys.Allow.ServiceAccounts, accountKeys(account))
	}
	return keys
}

func reloadKeysOf(r ir.ReloadPart) *reloadKeys {
	keys := &reloadKeys{Action: "Restart"}
	if selector := selectorKeysOf(r.Selector); selector != nil {
		keys.Workloads = &workloadsKeys{Selector: selector}
	}
	return keys
}
