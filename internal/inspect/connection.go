package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
)

// readTimeout bounds how long the initial read of the cluster may take.
const readTimeout = 2 * time.Minute

// connection is a cluster and its configuration.
type connection struct {
	clients *kube.Clients
	// user is the name of the user who runs the command.
	user   string
	config *config.Config
	sets   config.Sets
	// notes say what the user could not read.
	notes []string
	// withoutRules is true if the user may not read the configuration.
	withoutRules bool
	// withoutKey is true if the user may not read the digest key.
	withoutKey bool
}

// connect connects and loads the configuration. It fails if the user lacks one of
// the needed permissions.
func connect(ctx context.Context, options Options, needed []kube.Permission) (*connection, error) {
	c, err := dial(ctx, options)
	if err != nil {
		return nil, err
	}
	loaded, err := loadConfig(ctx, c.clients.Typed, options)
	if err != nil {
		return nil, err
	}
	if err := c.use(loaded, options); err != nil {
		return nil, err
	}
	if needed, err = c.withoutSecrets(ctx, needed); err != nil {
		return nil, err
	}
	return c, kube.CheckPermissions(ctx, c.clients.Typed, c.user, inspectRole, needed)
}

// withoutSecrets returns needed without permissions on Secrets, and lets no cache read
// them, if the configuration needs none and the user lacks one of these permissions.
func (c *connection) withoutSecrets(ctx context.Context, needed []kube.Permission) ([]kube.Permission, error) {
	if c.config.WithoutSecrets() != nil {
		return needed, nil //nolint:nilerr // the error says that the configuration needs Secrets, which is no failure here
	}
	isOfSecrets := func(permission kube.Permission) bool { return permission.Resource == object.Secret.Resource() }
	ofSecrets := slices.DeleteFunc(slices.Clone(needed), func(permission kube.Permission) bool { return !isOfSecrets(permission) })
	missing, err := kube.MissingPermissions(ctx, c.clients.Typed, ofSecrets)
	if err != nil || len(missing) == 0 {
		return needed, err
	}
	c.clients.Scope.Lacking = missing
	return slices.DeleteFunc(slices.Clone(needed), isOfSecrets), nil
}

// inspectRole is the ClusterRole with the permissions that the commands need.
const inspectRole = "headwater-inspect"

// dial connects without a configuration.
func dial(ctx context.Context, options Options) (*connection, error) {
	clients, err := kube.Connect(options.Kubeconfig, options.UserAgent)
	if err != nil {
		return nil, err
	}
	user, err := kube.WhoAmI(ctx, clients)
	return &connection{clients: clients, user: user.Username}, err
}

func (c *connection) use(loaded *config.Config, options Options) (err error) {
	c.config = loaded
	c.sets, err = loaded.Compile(options.Own)
	return err
}

// connectLeniently is connect for users without permissions. If they may not read the
// configuration, it continues without rules, with a note.
func connectLeniently(ctx context.Context, options Options) (*connection, error) {
	c, err := dial(ctx, options)
	if err != nil {
		return nil, err
	}
	loaded, err := loadConfig(ctx, c.clients.Typed, options)
	if apierrors.IsForbidden(err) {
		c.withoutRules = true
		c.notes = append(c.notes, fmt.Sprintf("could not read the configuration, ConfigMap %s/%s (forbidden): what rules reload is not shown; or pass --config FILE",
			options.Own, config.ConfigMapName))
		loaded, err = config.Parse("no configuration", []byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\nrules: []\n"))
	}
	if err != nil {
		return nil, err
	}
	return c, c.use(loaded, options)
}

// narrow limits c to one namespace if the user lacks one of the needed permissions in
// the cluster. It fails if the user lacks one of the necessary permissions there, too.
func (c *connection) narrow(ctx context.Context, namespace string, needed []kube.Permission, isNecessary func(kube.Permission) bool) error {
	missing, err := kube.MissingPermissions(ctx, c.clients.Typed, needed)
	if err != nil || len(missing) == 0 {
		return err
	}
	local := make([]kube.Permission, 0, len(needed))
	for _, permission := range needed {
		permission.Namespace = namespace
		if permission.Resource == "namespaces" {
			permission.Name, permission.Verbs = namespace, []string{"get"}
		}
		local = append(local, permission)
	}
	lacking, err := kube.MissingPermissions(ctx, c.clients.Typed, local)
	if err != nil {
		return err
	}
	var fatal []kube.Permission
	for _, permission := range lacking {
		if isNecessary(permission) {
			fatal = append(fatal, permission)
		}
	}
	if len(fatal) > 0 {
		return kube.FatalError{Err: fmt.Errorf("missing permissions: bind ClusterRole view in namespace %s, or ClusterRole %s in the cluster, to %s:\n  %s",
			namespace, inspectRole, c.user, strings.Join(kube.LinesOf(fatal), "\n  "))}
	}
	c.clients.Scope = kube.Scope{Namespace: namespace, Lacking: lacking}
	if text := c.clients.Scope.String(); text != "" {
		c.notes = append(c.notes, text+": what they contain, and whether they exist, is not shown")
	}
	return nil
}

// places are the places with sources that c reads.
func (c *connection) places() []informers.Place {
	scope := c.clients.Scope
	return slices.DeleteFunc(c.sets.Places(), func(place informers.Place) bool {
		return scope.Namespace != "" && (place.Namespace != scope.Namespace || !scope.Reads(place.Kind.Resource()))
	})
}

// fill starts caches and waits until they are full; they run until ctx ends.
func (c *connection) fill(ctx context.Context, caches *informers.Caches) error {
	if err := caches.Sources.Track(ctx, c.places()); err != nil {
		return err
	}
	caches.Start(ctx)
	readCtx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if !caches.AwaitFull(readCtx) {
		return fmt.Errorf("read the cluster: still reading %v after %s", caches.Pending(), readTimeout)
	}
	return nil
}

func permissions() []kube.Permission {
	read := []string{"get", "list", "watch"}
	return []kube.Permission{
		{Resource: "secrets", Verbs: read, For: "compare clones with their sources"},
		{Resource: "configmaps", Verbs: read, For: "compare clones with their sources"},
		{Resource: "namespaces", Verbs: read, For: "know which namespaces there are"},
	}
}

// loadConfig reads options.ConfigFile, and warns if the service would hold it, as far as the
// user may know. Without one it reads the ConfigMap in Headwater's namespace. If that is not
// valid, or held, loadConfig warns and returns the configuration that the service stored, which
// is in force.
func loadConfig(ctx context.Context, client kubernetes.Interface, options Options) (*config.Config, error) {
	if options.ConfigFile != "" {
		return loadFile(ctx, client, options)
	}
	current, err := readConfigMap(ctx, client, options.Own)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, err
	}
	warn := func(text string) {
		if options.Warn != nil {
			options.Warn(text)
		}
	}
	last, unread := readLastValid(ctx, client, options.Own)
	if unread != nil && err == nil {
		warn(fmt.Sprintf("whether Headwater put this configuration in force is not known: Secret %s/%s: %v", options.Own, config.LastValidName, unread))
	}
	if last == nil {
		return current, err
	}
	var why string
	if err != nil {
		why = problems[0].String()
		if rest := len(problems) - 1; rest > 0 {
			why += fmt.Sprintf(" (and %d more)", rest)
		}
	} else if held := last.Held(current); held != nil {
		why = held.Error()
	} else {
		return current, nil
	}
	warn(fmt.Sprintf("%s; the last valid configuration, Secret %s/%s, is used instead", why, options.Own, config.LastValidName))
	return last, nil
}

func loadFile(ctx context.Context, client kubernetes.Interface, options Options) (*config.Config, error) {
	file, err := config.Load(options.ConfigFile)
	if err != nil || options.Warn == nil {
		return file, err
	}
	if last, _ := readLastValid(ctx, client, options.Own); last != nil {
		if held := last.Held(file); held != nil {
			options.Warn("Headwater would not put this file in force: " + held.Error())
		}
	}
	return file, nil
}

// readLastValid returns what the service stored; nil if it stored nothing. It fails if that
// is not known, for example because the user may not read it.
func readLastValid(ctx context.Context, client kubernetes.Interface, namespace string) (*config.Config, error) {
	stored, err := client.CoreV1().Secrets(namespace).Get(ctx, config.LastValidName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	last, err := config.Parse(config.LastValidName, stored.Data[config.ConfigMapKey])
	if err != nil {
		return nil, errors.New("another version of Headwater wrote it")
	}
	return last, nil
}

func readConfigMap(ctx context.Context, client kubernetes.Interface, namespace string) (*config.Config, error) {
	name := fmt.Sprintf("ConfigMap %s/%s, key %s", namespace, config.ConfigMapName, config.ConfigMapKey)
	found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, config.ConfigMapName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the configuration from %s: %w; or pass --config FILE", name, err)
	}
	text, exists := found.Data[config.ConfigMapKey]
	if err != nil || !exists {
		return nil, errors.New("no configuration: there is no " + name + "; pass --config FILE, or name the namespace that Headwater runs in with --headwater-namespace")
	}
	return config.Parse(name, []byte(text))
}
