package app

import (
	"errors"

	"github.com/headwater-k8s/headwater/internal/config"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
)

// ownConfiguration is the ConfigMap of the configuration in namespace,
// Headwater's own, and how the webhook checks it.
func ownConfiguration(namespace string) protectdecide.OwnConfiguration {
	return protectdecide.OwnConfiguration{
		Namespace: namespace, Name: config.ConfigMapName, Key: config.ConfigMapKey,
		Check: func(text []byte) (problems, notes []string) {
			parsed, err := config.ParseIn(namespace, config.ConfigMapKey, text)
			if err == nil {
				_, err = parsed.Compile(namespace)
			}
			var found config.Problems
			switch {
			case errors.As(err, &found):
				return linesOf(found), nil
			case err != nil:
				return []string{err.Error()}, nil
			default:
				return nil, linesOf(parsed.Notes)
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
