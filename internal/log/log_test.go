package log

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

func TestOfAnObjectThatClientGoLogsOnlyTheTypeIsTold(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	BridgeKlog(zap.New(core))
	t.Cleanup(klog.ClearLogger)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Data: map[string][]byte{"k": []byte("c4n4ry")}}
	klog.Background().WithValues("object", secret).Error(nil, "no place in the store",
		"event", watch.Event{Object: secret}, "ref", klog.KObj(secret), "count", 3, "list", []any{secret})
	require.Equal(t, 1, logs.Len())
	fields := logs.All()[0].ContextMap()
	require.Equal(t, "(*v1.Secret)", fields["object"])
	require.Equal(t, "(watch.Event)", fields["event"])
	require.EqualValues(t, 3, fields["count"])
	require.NotContains(t, fields["list"], "c4n4ry")
	require.Contains(t, fields, "ref")
}

func TestTextsThatSayNothingAreNotLogged(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	logger := zap.New(fieldCore{core, filledFields}).With(zap.String("rule", ""), zap.String("kind", "Secret"))
	fields := []zap.Field{zap.String("engine", ""), zap.Int("count", 0), zap.Bool("proven", false)}
	logger.Info("told", fields...)
	require.Equal(t, map[string]any{"kind": "Secret", "count": int64(0), "proven": false}, logs.All()[0].ContextMap())
	require.Equal(t, "engine", fields[0].Key, "the caller's own stay")
}

func TestSettingsThatMakeNoSenseAreNamed(t *testing.T) {
	_, err := New("xml", "info")
	require.EqualError(t, err, `--log-format "xml": use json or console`)
	_, err = New("json", "loud")
	require.EqualError(t, err, `--log-level "loud": use debug, info, warn or error`)
}
