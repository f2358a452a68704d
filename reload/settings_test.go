package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/live"
)

func TestSettingsTakeEffectAsTheyAreSwapped(t *testing.T) {
	var standard Settings
	standard.Default()
	require.Empty(t, standard.Validate(field.NewPath("reload")))
	inForce := live.New(standard.Compile())
	require.Equal(t, &Compiled{Settings: standard, maxRollouts: 50, maxRolloutsPerNamespace: 10, confirmAfter: 2 * time.Second}, inForce.Load())

	own := Settings{
		MaxConcurrentRollouts: new(0), MaxConcurrentRolloutsPerNamespace: new(3), ConfirmRefreshAfter: &metav1.Duration{},
		Windows: []Window{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}},
	}
	own.Default()
	require.Empty(t, own.Validate(field.NewPath("reload")))
	inForce.Swap(own.Compile())
	got := inForce.Load()
	require.Len(t, got.windows, 1)
	got.windows = nil
	require.Equal(t, &Compiled{Settings: own, maxRolloutsPerNamespace: 3}, got)
}
