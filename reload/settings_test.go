package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestSettingsTakeEffectAsTheyAreSwapped(t *testing.T) {
	var standard Settings
	standard.Default()
	require.Empty(t, standard.Validate(field.NewPath("reload")))
	live := NewLiveSettings(standard)
	require.Equal(t, &pacing{settings: standard, maxRollouts: 50, maxRolloutsPerNamespace: 10, confirmAfter: 2 * time.Second}, live.load())

	own := Settings{
		MaxConcurrentRollouts: new(0), MaxConcurrentRolloutsPerNamespace: new(3), ConfirmRefreshAfter: &metav1.Duration{},
		RefreshesPerSecond: 7, Windows: []Window{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}},
	}
	own.Default()
	require.Empty(t, own.Validate(field.NewPath("reload")))
	live.Swap(own)
	got := live.load()
	require.Len(t, got.windows, 1)
	got.windows = nil
	require.Equal(t, &pacing{settings: own, maxRolloutsPerNamespace: 3, refreshesPerSecond: 7}, got)
}
