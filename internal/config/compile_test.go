package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
)

func TestCompileGivesEachModuleItsRules(t *testing.T) {
	sets, err := parse(t, file(
		"rules:",
		"- {name: both, source: {kind: Secret, namespace: platform, name: one}, sync: {}, protect: {}}",
		"- {name: guard, source: {kind: ConfigMap, namespace: platform, name: two}, protect: {message: ask us}}",
		"- {name: push, source: {kind: Secret, namespace: certs, name: tls}, reload: {action: Refresh}}",
	)).Compile("headwater")
	require.NoError(t, err)

	require.Len(t, sets.Sync.All(), 1)
	require.Len(t, sets.Protect.All(), 2)
	require.Len(t, sets.Reload.All(), 1)
	two := object.Ref{Kind: object.ConfigMap, Namespace: "platform", Name: "two"}
	require.Equal(t, "ask us", sets.Protect.ForSource(two, nil)[0].Message)
	push, found := sets.Reload.Named("push")
	require.True(t, found)
	require.EqualValues(t, "Refresh", push.Action)
}

func TestPlacesAreThoseOfEverySource(t *testing.T) {
	sets, err := parse(t, file(
		"rules:",
		"- {name: a, source: {kind: Secret, namespace: platform, name: one}, sync: {}, protect: {}, reload: {}}",
		"- {name: b, source: {kind: Secret, namespace: platform, name: two}, sync: {}}",
		"- {name: c, source: {kind: ConfigMap, namespace: platform, name: one}, protect: {}}",
		"- {name: d, source: {kind: Secret, namespace: certs, name: one}, reload: {}}",
	)).Compile("headwater")
	require.NoError(t, err)
	require.Equal(t, []informers.Place{
		{Kind: object.Secret, Namespace: "certs"},
		{Kind: object.ConfigMap, Namespace: "platform"},
		{Kind: object.Secret, Namespace: "platform"},
	}, sets.Places())

	empty, err := parse(t, file()).Compile("headwater")
	require.NoError(t, err)
	require.Empty(t, empty.Places())
}
