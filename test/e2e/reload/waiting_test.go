package reload

import (
	"fmt"
	"testing"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestAReferenceThatIsAddedWhileARestartWaitsIsOnRecord(t *testing.T) {
	e, namespace := newStage(t, "added")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Deployment(namespace, "web", lab.ByEnv("shared", "used"), map[string]string{mark.Reload: "Auto"})
	e.Sections = "reload: {windows: [{schedule: 0 0 29 2 *, duration: 1h}]}\n"
	h := e.Reloads("added")
	e.Adopted(h, namespace, "web")
	before, adopted := e.Stamps(namespace), e.read(namespace, "web").Annotations[mark.Baseline]

	e.Change("added", "used", "2")
	e.Waits(h, 1, "window")
	e.patched(namespace, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","envFrom":[{"secretRef":{"name":"own"}}]}]}}}}`)
	e.adoptedAnew(namespace, "web", adopted)
	e.Change("added", "used", "1")
	e.Waits(h, 0, "window")
	e.SetKey(namespace, "own", "k", "2")
	e.HasNote(namespace, "web", "RestartWaits", fmt.Sprintf("Secret/%s/own", namespace))
	e.Restarted(namespace, before)
}
