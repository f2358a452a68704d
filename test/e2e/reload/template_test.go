package reload

import (
	"context"
	"fmt"
	"testing"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// A Deployment whose pod template is as it once was takes the pods of that time
// for new, which may have started with the data that came in between.
func TestDataThatIsAsItOnceWasIsRolledOutByATemplateOfItsOwn(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("once")
	e.Deployment(namespace, "web", harness.ByEnv("shared", "used"), nil)
	e.Sections = e2e.Unpaced
	h := e.Start(e2e.ReloadRule("once"))
	e.Cloned("once", "used", "1")
	stamps := e.Adopted(h, namespace, "web")
	values := []string{"2", "3", "2", "3", "1"}
	for _, value := range values {
		e.Change("once", "used", value)
		e.Restarted(namespace, stamps, "Deployment/web")
		stamps = e.Stamps(namespace)
	}
	e.Eventually(func(context.Context) error {
		if got, want := e.rollouts(namespace, "web"), 1+len(values); got != want {
			return fmt.Errorf("%d pod templates were rolled out, should be %d", got, want)
		}
		return nil
	})
}
