package page

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/page/grid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(rule, namespace string, state grid.State) grid.Place {
	return grid.Place{Target: grid.Target{Kind: "Secret", Namespace: namespace, Name: rule + "-secret"}, Rule: rule, State: state}
}
