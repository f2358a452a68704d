package app

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

func testSettings() Settings {
	return Settings{
		ConfigFile: "../../configs/headwater.yaml", Namespace: "headwater-system",
		WebhookURL: "https://127.0.0.1:9443", WebhookAddress: "127.0.0.1:0", WebhookCASettle: time.Minute, MetricsAddress: "127.0.0.1:0",
		LeaderElect: true, LeaseDuration: 15 * time.Second, LogFormat: "json", LogLevel: "info", Workers: 2, Page: true,
	}
}

func testOptions(t *testing.T) fx.Option {
	t.Helper()
	loaded, err := config.Parse("headwater.yaml", configs.Sample())
	require.NoError(t, err)
	return Options(testSettings(), &Started{Config: loaded}, fakeClients(t), zap.NewNop())
}

func fakeClients(t *testing.T) *kube.Clients {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	typed := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "headwater-system"}})
	typed.PrependReactor("create", "selfsubjectaccessreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	typed.PrependReactor("create", "selfsubjectreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{
			UserInfo: authenticationv1.UserInfo{Username: "headwater"},
		}}, nil
	})
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{rulestatus.GVR: "RuleStatusList"})
	return &kube.Clients{Typed: typed, Owner: kube.NewOwner(typed), Metadata: metadatafake.NewSimpleMetadataClient(scheme), Dynamic: dynamic, Host: "fake", Config: &rest.Config{Host: "https://127.0.0.1:1"}}
}

// Every constructor runs, every hook starts and stops, and nothing is left
// running.
func TestTheWholeGraphStartsAndStopsWithoutALeak(t *testing.T) {
	ignored := goleak.IgnoreCurrent()
	var b *boot
	app := fxtest.New(t, testOptions(t), fx.Populate(&b))
	app.RequireStart()
	ready := func(context.Context) (bool, error) { return b.check().Ready() == nil, nil }
	_ = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, ready)
	require.NoError(t, b.check().Ready())
	app.RequireStop()
	goleak.VerifyNone(t, ignored)
}

func TestAMetricSaysWhatThisWasBuiltFrom(t *testing.T) {
	want := fmt.Sprintf(`
# HELP headwater_build_info 1; the labels say what this binary was built from.
# TYPE headwater_build_info gauge
headwater_build_info{commit="unknown",go_version=%q,version="dev"} 1
`, goruntime.Version())
	require.NoError(t, testutil.GatherAndCompare(newRegistry(fakeClients(t)), strings.NewReader(want), "headwater_build_info"))
}

// The rules are those of https://prometheus.io/docs/practices/naming. Metrics that
// have no value before something happens, an end-to-end test looks at.
func TestMetricsAreNamedByConvention(t *testing.T) {
	var registry *prometheus.Registry
	require.NoError(t, fx.New(testOptions(t), fx.Populate(&registry)).Err())
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestSettingsNameTheFlagToMend(t *testing.T) {
	require.NoError(t, testSettings().Validate())
	for want, change := range map[string]func(*Settings){
		"--config":              func(s *Settings) { s.ConfigFile = "" },
		"--headwater-namespace": func(s *Settings) { s.Namespace = "Not A Namespace" },
		"--workers":             func(s *Settings) { s.Workers = 0 },
		"--webhook-drain":       func(s *Settings) { s.WebhookDrain = -1 },
		"--lease-duration 4s":   func(s *Settings) { s.LeaseDuration = 4 * time.Second },
		"--lease-duration 5.5s": func(s *Settings) { s.LeaseDuration = 5500 * time.Millisecond },
		"--webhook-ca-settle":   func(s *Settings) { s.WebhookCASettle = 0 },
	} {
		settings := testSettings()
		change(&settings)
		require.ErrorContains(t, settings.Validate(), want)
	}
}
