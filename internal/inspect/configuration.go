package inspect

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/config"
)

// loadConfig reads options.ConfigFile, or else the ConfigMap in Headwater's
// namespace. If the ConfigMap is not valid, loadConfig warns and returns the last
// valid configuration that the service stored.
func loadConfig(ctx context.Context, client kubernetes.Interface, options Options) (*config.Config, error) {
	if options.ConfigFile != "" {
		return config.Load(options.ConfigFile)
	}
	current, err := readConfigMap(ctx, client, options.Namespace, config.ConfigMapName)
	var problems config.Problems
	if !errors.As(err, &problems) {
		return current, err
	}
	last, lastErr := readConfigMap(ctx, client, options.Namespace, config.LastValidName)
	if lastErr != nil {
		return nil, err
	}
	if options.Warn != nil {
		options.Warn(fallbackWarning(options.Namespace, problems))
	}
	return last, nil
}

func fallbackWarning(namespace string, problems config.Problems) string {
	more := ""
	if rest := len(problems) - 1; rest > 0 {
		more = fmt.Sprintf(" (and %d more)", rest)
	}
	return fmt.Sprintf("%s%s; the last valid configuration, ConfigMap %s/%s, is used instead",
		problems[0], more, namespace, config.LastValidName)
}

func readConfigMap(ctx context.Context, client kubernetes.Interface, namespace, configMap string) (*config.Config, error) {
	name := fmt.Sprintf("ConfigMap %s/%s, key %s", namespace, configMap, config.ConfigMapKey)
	found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, configMap, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the configuration from %s: %w; or pass --config FILE", name, err)
	}
	text, exists := found.Data[config.ConfigMapKey]
	if err != nil || !exists {
		return nil, errors.New("no configuration: there is no " + name + "; pass --config FILE, or name Headwater's namespace with --namespace")
	}
	return config.Parse(name, []byte(text))
}
