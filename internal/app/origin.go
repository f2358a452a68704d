package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
)

// aboutConfiguration returns what an Event about the configuration is about: the
// ConfigMap that the file comes from, else Headwater's own namespace.
func aboutConfiguration(ctx context.Context, client kubernetes.Interface, settings Settings, log *zap.Logger) *corev1.ObjectReference {
	found, err := client.CoreV1().ConfigMaps(settings.Namespace).Get(ctx, config.ConfigMapName, metav1.GetOptions{})
	switch {
	case err == nil && comesFrom(settings.ConfigFile, found):
		return events.Reference("v1", "ConfigMap", found)
	case err != nil && !apierrors.IsNotFound(err):
		log.Warn("cannot tell whether the configuration file comes from ConfigMap "+config.ConfigMapName, zap.Error(err))
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: settings.Namespace, Namespace: settings.Namespace}
}

// comesFrom reports whether file is a key of configMap: the kubelet has mounted
// it, perhaps in an older version, or it holds the same.
func comesFrom(file string, configMap *corev1.ConfigMap) bool {
	text, found := configMap.Data[config.ConfigMapKey]
	if !found {
		return false
	}
	// The kubelet replaces this link to switch all files of a volume at once.
	link, err := os.Lstat(filepath.Join(filepath.Dir(file), "..data"))
	if err == nil && link.Mode()&os.ModeSymlink != 0 && filepath.Base(file) == config.ConfigMapKey {
		return true
	}
	raw, err := os.ReadFile(file)
	return err == nil && string(raw) == text
}

// ownConfiguration is the ConfigMap of the configuration in Headwater's own namespace,
// and how the webhook checks it.
func ownConfiguration(settings Settings, kept *lastValid) protectdecide.OwnConfiguration {
	namespace := settings.Namespace
	return protectdecide.OwnConfiguration{
		Namespace: namespace, Name: config.ConfigMapName, Key: config.ConfigMapKey,
		Check: func(text []byte) (problems, notes []string) {
			parsed, err := config.ParseIn(namespace, config.ConfigMapKey, text)
			if err == nil {
				_, err = parsed.Compile(namespace)
			}
			if err == nil && settings.WithoutSecrets {
				err = parsed.WithoutSecrets()
			}
			var found config.Problems
			switch {
			case errors.As(err, &found):
				return linesOf(found), nil
			case err != nil:
				return []string{err.Error()}, nil
			default:
				notes = linesOf(parsed.Notes)
				if held := kept.inForce.Load().Held(parsed); held != nil {
					notes = append([]string{held.Error()}, notes...)
				}
				return nil, notes
			}
		},
	}
}

func linesOf(problems []config.Problem) []string {
	var lines []string
	for _, problem := range problems {
		lines = append(lines, problem.String())
	}
	return lines
}
