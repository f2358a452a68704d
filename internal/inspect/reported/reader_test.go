package reported

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// failing returns a reader of an API server that answers every read with err.
func failing(err error) *reader {
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{rulestatus.GVR: "RuleStatusList"})
	objects.PrependReactor("*", "*", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	return &reader{clients: &kube.Clients{Typed: fake.NewClientset()}, statuses: objects.Resource(rulestatus.GVR)}
}

func TestWhyRuleStatusesCannotBeRead(t *testing.T) {
	gr := rulestatus.GVR.GroupResource()
	for sentence, test := range map[string]struct {
		rule string
		err  error
		want string
	}{
		"the kind is not installed, for all rules": {"", apierrors.NewNotFound(gr, ""), "is not installed"},
		"the kind is not installed, for a rule":    {"blog", apierrors.NewGenericServerResponse(404, "get", gr, "", "", 0, false), "is not installed"},
		"the rule has none":                        {"blog", apierrors.NewNotFound(gr, "blog"), `rule "blog" has no RuleStatus; does the configuration have the rule`},
		"the user may not":                         {"", apierrors.NewForbidden(gr, "", nil), "bind ClusterRole headwater-view"},
		"the server fails":                         {"", apierrors.NewInternalError(io.EOF), "read RuleStatuses: Internal error"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := failing(test.err).Read(t.Context(), test.rule)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestAWaitThatReadsNothingIsNotOver(t *testing.T) {
	for sentence, ctx := range map[string]func() (context.Context, context.CancelFunc){
		"interrupted": func() (context.Context, context.CancelFunc) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			return ctx, stop
		},
		"out of time": func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Nanosecond) },
		"no RuleStatus": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 50*time.Millisecond)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			ctx, stop := ctx()
			defer stop()
			report, err := failing(apierrors.NewNotFound(rulestatus.GVR.GroupResource(), "blog")).Wait(ctx, "blog", 0, io.Discard)
			require.NoError(t, err)
			require.NotEmpty(t, report.Attention)
		})
	}
}
