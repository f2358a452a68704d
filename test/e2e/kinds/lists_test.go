package kinds

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// listed is a schema with one list whose elements have a key, and one without.
const listed = "{type: object, properties: {spec: {type: object, properties: {" +
	"env: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], " +
	"properties: {name: {type: string}, value: {type: string}}}}, " +
	"params: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}}}}}}"

// elements are what a list of spec holds, as name=value.
func (k kind) elements(ctx context.Context, namespace, name, list string) (string, error) {
	object, err := k.object(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	elements, _, err := unstructured.NestedSlice(object.Object, "spec", list)
	var all []string
	for _, element := range elements {
		fields, _ := element.(map[string]any)
		all = append(all, fmt.Sprintf("%v=%v", fields["name"], fields["value"]))
	}
	return strings.Join(all, " "), err
}

func (k kind) hasElements(namespace, name, list, want string) {
	k.Helper()
	k.Eventually(func(ctx context.Context) error {
		is, err := k.elements(ctx, namespace, name, list)
		if err == nil && is != want {
			err = fmt.Errorf("%s of %s holds %q, want %q", list, name, is, want)
		}
		return err
	})
}

func TestAFieldInAnElementOfAListIsSetAndKept(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("lists")
	gates := e.kind("example.com", "v1", "Bucket")
	gates.installWith(listed)
	gates.grant()
	gates.create(namespace, "keyed", "spec: {env: [{name: THEIRS, value: a}, {name: KEY, value: ''}]}")
	const set = "allowSecretValues: true, force: true, set: [{from: used, to: 'spec.env[name=KEY].value'}]"
	h := e.Start(targetRule("lists", set))
	gates.hasElements(namespace, "keyed", "env", "THEIRS=a KEY=1")
	e.Change("lists", "used", "2")
	gates.hasElements(namespace, "keyed", "env", "THEIRS=a KEY=2")
	gates.merge(namespace, "keyed", "spec: {env: [{name: MORE, value: b}, {name: KEY, value: drifted}]}")
	gates.hasElements(namespace, "keyed", "env", "MORE=b KEY=2")
	e.Settled(h)

	// A list without keys would be replaced as a whole, with what others have in it.
	gates.create(namespace, "whole", "spec: {params: [{name: THEIRS, value: a}, {name: KEY, value: ''}]}")
	e.ConfigFile(targetRule("lists", strings.Replace(set, "spec.env", "spec.params", 1)))
	require.Contains(t, e.HasEvent(namespace, "whole", "TargetRefused"), "x-kubernetes-list-type")
	gates.hasElements(namespace, "whole", "params", "THEIRS=a KEY=")
	e.requireNoValue(h, namespace)
}
