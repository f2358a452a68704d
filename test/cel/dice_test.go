package cel

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// dice draws from bytes, and what comes first once they are spent.
type dice []byte

func (d *dice) one(of int) int {
	if len(*d) == 0 {
		return 0
	}
	drawn := (*d)[0]
	*d = (*d)[1:]
	return int(drawn) % of
}

func pick[T any](d *dice, from ...T) T { return from[d.one(len(from))] }

// some is any subset.
func some[T any](d *dice, from ...T) []T {
	var drawn []T
	for _, item := range from {
		if d.one(2) == 1 {
			drawn = append(drawn, item)
		}
	}
	return drawn
}

const (
	odd       = `o'"\d`
	boundUser = "bound"
)

func (d *dice) rules(t testing.TB) *rules.Set[protectspec.Rule] {
	t.Helper()
	var all []protectspec.Rule
	for _, name := range []string{"r0", "r1", "r2"}[:1+d.one(3)] {
		source := rules.Source{Kind: pick(d, object.Kinds...), Namespace: pick(d, "p", "q"), Name: pick(d, "a", "b")}
		if selector := d.selector(); selector != nil {
			source.Name, source.Selector = "", selector
		}
		if slices.ContainsFunc(all, func(r protectspec.Rule) bool { return source.Name != "" && r.Source.Ref() == source.Ref() }) {
			continue // no configuration may
		}
		base, err := rules.NewBase(name, source)
		require.NoError(t, err)
		all = append(all, protectspec.Rule{Base: base, Config: d.config(), Copied: protectspec.Copied{Labels: d.globs(), Annotations: d.globs()}})
	}
	return rules.NewSet(all...)
}

func (d *dice) globs() []string {
	return pick(d, nil, nil, []string{"*"}, []string{"t*m", "n"}, []string{"[^a-d]e?[l-n]", "x.y/*"}, []string{"?.y/t", `\e[z-alm]*`})
}

func (d *dice) selector() *metav1.LabelSelector {
	expression := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a.b/Share", Operator: operator, Values: values}}}
	}
	return pick(d, nil, nil,
		&metav1.LabelSelector{MatchLabels: map[string]string{"a.b/Share": "yes"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"a.b/Share": "", "team": "x"}},
		expression(metav1.LabelSelectorOpExists), expression(metav1.LabelSelectorOpDoesNotExist),
		expression(metav1.LabelSelectorOpIn, "yes", "no"), expression(metav1.LabelSelectorOpNotIn, "yes"))
}

func (d *dice) config() protectspec.Config {
	guard := d.one(2) == 1
	config := protectspec.Config{
		Operations:     d.operations(),
		Mode:           pick(d, protectspec.Enforce, protectspec.Warn, protectspec.Audit),
		Message:        pick(d, "", odd, "two\nlines"),
		Clones:         pick(d, protectspec.Deny, protectspec.Revert),
		GuardNamespace: &guard,
		Allow: protectspec.Allow{
			ClusterRoles:    pick(d, []string{}, []string{"editor"}),
			Users:           pick(d, nil, []string{"alice", odd}),
			Groups:          pick(d, nil, []string{"staff"}),
			ServiceAccounts: pick(d, nil, []protectspec.ServiceAccount{{Namespace: "ci", Name: "robot"}}),
		},
	}
	config.Default()
	return config
}

// operations are the default, or any that a rule may list.
func (d *dice) operations() []protectspec.Operation {
	if d.one(3) == 0 {
		return nil
	}
	return some(d, protectspec.Operations()...)
}

// world binds the ClusterRole editor to a user and a group.
func (d *dice) world() protectdecide.World {
	terminating, holds := d.one(2) == 1, d.one(4) != 3
	world := quiet(protectspec.Settings{SystemIdentities: pick(d, nil, []string{odd})})
	world.Terminating = func(namespace string) bool { return terminating && namespace == "p" }
	world.HasSource = func(protectspec.Rule) bool { return holds }
	world.Holders = func(role string) []string {
		if role != "editor" {
			return nil
		}
		return []string{"user " + boundUser, "group editors"}
	}
	world.Bound = func(user protectdecide.User, role string) bool {
		if role != "editor" {
			return false
		}
		return user.Name == boundUser || slices.Contains(user.Groups, "editors")
	}
	return world
}

func (d *dice) request() request {
	r := request{
		operation: pick(d, admission.Update, admission.Delete, admission.Create),
		kind:      pick(d, object.Secret, object.ConfigMap, object.Secret, object.ConfigMap, protectspec.KindNamespace),
		user: user.DefaultInfo{
			Name: pick(d, "mallory", "alice", odd, boundUser, headwaterUser, "system:serviceaccount:ci:robot",
				"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller",
				"system:kube-controller-manager", "system:serviceaccount:kube-system:default"),
			Groups: some(d, "staff", "editors", "system:masters"),
			UID:    pick(d, "uid", ""),
		},
		inNamespace: pick(d, "p", "q", "z"),
	}
	if r.kind == protectspec.KindNamespace {
		r.operation, r.name = admission.Delete, r.inNamespace
		r.before = &object.Full{Kind: r.kind, ObjectMeta: metav1.ObjectMeta{Name: r.name}}
		if d.one(3) == 2 {
			r.before.DeletionTimestamp = new(metav1.Now())
		}
		return r
	}
	name := pick(d, "a", "b", "c")
	if r.operation != admission.Delete || d.one(2) == 0 {
		r.name = name // the deletion of a collection names nothing
	}
	if r.operation != admission.Create {
		r.before = d.object(r.kind, r.inNamespace, name)
	}
	switch {
	case r.operation == admission.Create:
		r.after = d.object(r.kind, r.inNamespace, name)
	case r.operation == admission.Update && d.one(3) == 0:
		r.after = d.object(r.kind, r.inNamespace, name)
	case r.operation == admission.Update:
		r.after = d.edited(r.before)
	default:
	}
	return r
}

func (d *dice) object(kind object.Kind, namespace, name string) *object.Full {
	full := &object.Full{Kind: kind, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u"}}
	for range 2 {
		full = d.edited(full)
	}
	return full
}

// edited is of with some of it changed.
func (d *dice) edited(of *object.Full) *object.Full {
	full := *of
	for range d.one(5) {
		d.edit(&full)
	}
	return &full
}

func (d *dice) edit(full *object.Full) {
	switch d.one(10) {
	case 0:
		full.Labels = object.Merged(full.Labels, map[string]string{"a.b/Share": pick(d, "yes", "no", "")})
	case 1:
		full.Labels = object.Merged(full.Labels, map[string]string{"headwater.dev/clone": pick(d, "true", "true", "false")})
	case 2:
		full.Annotations = object.Merged(full.Annotations, map[string]string{"headwater.dev/rule": pick(d, "r0", "r1", "r9", "")})
	case 3:
		full.Annotations = object.Merged(full.Annotations, map[string]string{pick(d, "headwater.dev/source", "else", "headwater.dev"): pick(d, "", "x", odd)})
	case 4:
		full.Labels = pick(d, nil, map[string]string{}, map[string]string{"team": "x"}, map[string]string{"x.y/t": "z", "app.kubernetes.io/instance": "x"})
	case 5:
		full.Content.Data = pick(d, nil, map[string][]byte{}, map[string][]byte{"k": []byte("v")}, map[string][]byte{"k": {}}, map[string][]byte{"k": []byte("w"), "l": []byte("v")})
	case 6:
		if full.Kind == object.ConfigMap {
			full.Content.BinaryData = pick(d, nil, map[string][]byte{}, map[string][]byte{"b": {0xff, 0}}, map[string][]byte{"b": {1}})
			return
		}
		full.Content.Type = pick(d, "Opaque", "", "kubernetes.io/tls")
	case 7:
		full.Content.Immutable = d.one(2) == 1
	case 8:
		full.Finalizers = pick(d, nil, []string{"x/a"}, []string{"x/a", "x/b"}, []string{"x/b"})
	default:
		full.OwnerReferences = d.owners()
	}
}

func (d *dice) owners() []metav1.OwnerReference {
	var all []metav1.OwnerReference
	for _, uid := range some(d, "1", "2") {
		all = append(all, metav1.OwnerReference{
			APIVersion: "v1", Kind: pick(d, "Pod", "Node"), Name: "o", UID: types.UID(uid),
			Controller: pick(d, nil, new(true), new(false)), BlockOwnerDeletion: pick(d, nil, new(true), new(false)),
		})
	}
	return all
}
