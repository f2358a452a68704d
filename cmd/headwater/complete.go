package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

const (
	// completionTimeout is how long a shell waits for the cluster.
	completionTimeout = 2 * time.Second
	// maxCompletions bounds what one request lists.
	maxCompletions = 500

	noFiles = cobra.ShellCompDirectiveNoFileComp
)

// ask returns what find finds in the cluster, for shell completion. It returns nothing
// if the cluster does not answer in time, because a shell has no place for an error.
func (in *inspection) ask(find func(context.Context, *kube.Clients) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	if readEnvironment(in.command.Flags()) != nil {
		return nil
	}
	clients, err := kube.Connect(kubeconfigFrom(in.cluster), in.options.UserAgent)
	if err != nil {
		return nil
	}
	found, err := find(ctx, clients)
	if err != nil {
		return nil
	}
	return found
}

// completeRules completes the rules for which meant returns true: of the file of
// --config, of the ConfigMap in the cluster, or else every rule with a RuleStatus.
func (in *inspection) completeRules(meant func(config.Rule) bool) {
	in.command.ValidArgsFunction = func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) > 0 || readEnvironment(command.Flags()) != nil:
			return nil, noFiles
		case in.options.ConfigFile == "":
			return in.ask(func(ctx context.Context, clients *kube.Clients) ([]string, error) {
				return in.rulesInForce(ctx, clients, meant)
			}), noFiles
		}
		loaded, err := config.Load(in.options.ConfigFile)
		if err != nil {
			return nil, noFiles
		}
		return rulesOf(loaded, meant), noFiles
	}
}

func (in *inspection) rulesInForce(ctx context.Context, clients *kube.Clients, meant func(config.Rule) bool) ([]string, error) {
	found, err := clients.Typed.CoreV1().ConfigMaps(in.options.Own).Get(ctx, config.ConfigMapName, metav1.GetOptions{})
	if err != nil {
		return listNames(ctx, clients, rulestatus.GVR, "")
	}
	loaded, err := config.Parse(config.ConfigMapKey, []byte(found.Data[config.ConfigMapKey]))
	if err != nil {
		return nil, err
	}
	return rulesOf(loaded, meant), nil
}

func rulesOf(loaded *config.Config, meant func(config.Rule) bool) (names []string) {
	for _, rule := range loaded.Rules {
		if meant(rule) {
			names = append(names, rule.Name)
		}
	}
	return names
}

// completeNamespaces completes the namespaces of the cluster for flag.
func (in *inspection) completeNamespaces(flag string) {
	offer(in.command, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return in.ask(func(ctx context.Context, clients *kube.Clients) ([]string, error) {
			return listNames(ctx, clients, corev1.SchemeGroupVersion.WithResource("namespaces"), "")
		}), noFiles
	})
}

// completeContexts completes the contexts of the kubeconfig.
func (in *inspection) completeContexts() {
	offer(in.command, "context", func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
		raw, err := in.cluster.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, noFiles
		}
		for name := range raw.Contexts {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, noFiles
	})
}

// namedKind is a kind of which names are completed.
type namedKind struct {
	kind, short string
	schema.GroupVersionResource
}

// workloadKinds are what explain explains, without kinds that a cluster may not have.
var workloadKinds = []namedKind{
	{"deployment", "deploy", appsv1.SchemeGroupVersion.WithResource("deployments")},
	{"statefulset", "sts", appsv1.SchemeGroupVersion.WithResource("statefulsets")},
	{"daemonset", "ds", appsv1.SchemeGroupVersion.WithResource("daemonsets")},
	{"cronjob", "cj", batchv1.SchemeGroupVersion.WithResource("cronjobs")},
	{"pod", "po", corev1.SchemeGroupVersion.WithResource("pods")},
}

var objectKinds = []namedKind{
	{"secret", "", corev1.SchemeGroupVersion.WithResource("secrets")},
	{"configmap", "cm", corev1.SchemeGroupVersion.WithResource("configmaps")},
}

// completeObjects completes KIND/NAME and KIND NAME.
func (in *inspection) completeObjects(kinds []namedKind) {
	in.command.ValidArgsFunction = func(_ *cobra.Command, args []string, text string) (found []string, directive cobra.ShellCompDirective) {
		kind, _, hasName := strings.Cut(text, "/")
		switch {
		case len(args) == 0 && hasName:
			for _, name := range in.namesOf(kinds, kind) {
				found = append(found, kind+"/"+name)
			}
			return found, noFiles
		case len(args) == 0:
			for _, one := range kinds {
				found = append(found, one.kind+"/")
			}
			return found, noFiles | cobra.ShellCompDirectiveNoSpace
		case len(args) == 1 && !strings.Contains(args[0], "/"):
			return in.namesOf(kinds, args[0]), noFiles
		default:
			return nil, noFiles
		}
	}
}

// namesOf returns the names of the objects of that kind in the namespace of --namespace.
func (in *inspection) namesOf(kinds []namedKind, kind string) []string {
	kind = strings.ToLower(kind)
	at := slices.IndexFunc(kinds, func(one namedKind) bool {
		return kind != "" && (kind == one.kind || kind == one.short || kind == one.Resource)
	})
	if at < 0 {
		return nil
	}
	return in.ask(func(ctx context.Context, clients *kube.Clients) ([]string, error) {
		return listNames(ctx, clients, kinds[at].GroupVersionResource, kubeconfigFrom(in.cluster).Namespace().Name)
	})
}

func listNames(ctx context.Context, clients *kube.Clients, resource schema.GroupVersionResource, namespace string) ([]string, error) {
	list, err := clients.Metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: maxCompletions})
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names, nil
}

// offer registers the completion of a flag.
func offer(command *cobra.Command, flag string, complete cobra.CompletionFunc) {
	// It fails only for an unknown flag or a second registration.
	if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// offerValues registers the completion of a flag with fixed values.
func offerValues(command *cobra.Command, flag string, values ...string) {
	offer(command, flag, cobra.FixedCompletions(values, noFiles))
}
