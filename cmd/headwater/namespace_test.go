package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestTheNamespaceIsChosenAsByKubectl(t *testing.T) {
	file, _ := kubeconfigOf(t, &clientcmdapi.AuthInfo{})
	config, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	config.Contexts["it"].Namespace = "of-context"
	config.Contexts["bare"] = &clientcmdapi.Context{Cluster: "it"}
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"the context has one":   {nil, "of-context"},
		"the context has none":  {[]string{"--context", "bare"}, "default"},
		"the flag overrides it": {[]string{"-n", "of-flag"}, "of-flag"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("HEADWATER_NAMESPACE", "own")
			command := &cobra.Command{Use: "it"}
			in := newInspection(command)
			addNamespace(command, in.cluster)
			require.NoError(t, command.ParseFlags(append(test.args, "--kubeconfig", file)))
			require.NoError(t, readEnvironment(command.Flags()))
			require.Equal(t, test.want, kubeconfigFrom(in.cluster).Namespace().Name)
			require.Equal(t, "own", in.options.Own)
		})
	}
}
