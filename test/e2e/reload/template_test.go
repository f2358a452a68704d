package reload

import (
	"context"
	"testing"

	"github.com/headwater-k8s/headwater/test/lab"
)

// A Deployment whose pod template is as it once was takes the pods of that time
// for new, which may have started with the data that came in between.
func TestDataThatIsAsItOnceWasIsRolledOutByATemplateOfItsOwn(t *testing.T) {
	e, namespace := newStage(t, "once")
	e.Deployment(namespace, "web", lab.ByEnv("shared", "used"), nil)
	e.Sections = lab.Unpaced
	h := e.Reloads("once")
	stamps := e.Adopted(h, namespace, "web")
	rolledOut := func(want int) { // the controller skips a template that is replaced before it sees it
		t.Helper()
		e.Eventually(func(context.Context) error {
			got := e.rollouts(namespace, "web")
			return lab.ErrorIf(got != want, "%d pod templates were rolled out, should be %d", got, want)
		})
	}
	rolledOut(1)
	for i, value := range []string{"2", "3", "2", "3", "1"} {
		e.Change("once", "used", value)
		e.Restarted(namespace, stamps, "Deployment/web")
		stamps = e.Stamps(namespace)
		rolledOut(2 + i)
	}
}
