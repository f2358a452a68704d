package leader

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// sharedLock is a lock that anybody may take.
type sharedLock struct {
	resourcelock.Interface
	holder string
	raw    []byte
	err    error
}

func (l *sharedLock) Identity() string { return "me" }

func (l *sharedLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, l.raw, l.err
}

func (l *sharedLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.err == nil {
		l.holder = record.HolderIdentity
	}
	return l.err
}

func TestALeaseIsHeldAsLongAsNobodyElseMayTakeIt(t *testing.T) {
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	taken := func(t *testing.T) (*lease, *sharedLock, *int) {
		t.Helper()
		shared, losses := &sharedLock{}, 0
		l := &lease{duration: DefaultLeaseDuration, Interface: shared, lost: func() { losses++ }}
		require.False(t, l.held(), "nobody gave it")
		require.NoError(t, l.Update(t.Context(), mine))
		require.True(t, l.held())
		return l, shared, &losses
	}
	t.Run("not once it has run out, whatever this process has seen", func(t *testing.T) {
		l, _, _ := taken(t)
		past := time.Now().Add(-DefaultLeaseDuration)
		l.renewed.Store(&past)
		require.False(t, l.held())
		require.NoError(t, l.Update(t.Context(), mine))
		require.True(t, l.held(), "renewed")
	})
	t.Run("a renewal that fails adds nothing", func(t *testing.T) {
		l, shared, _ := taken(t)
		before := l.renewed.Load()
		shared.err = errors.New("connection refused")
		require.Error(t, l.Update(t.Context(), mine))
		require.Same(t, before, l.renewed.Load())
	})
	t.Run("not once somebody else is seen to hold it, which is told once", func(t *testing.T) {
		l, shared, losses := taken(t)
		shared.holder = "other"
		for range 2 {
			_, _, err := l.Get(t.Context())
			require.NoError(t, err)
		}
		require.False(t, l.held())
		require.Equal(t, 1, *losses)
	})
	t.Run("a look that fails says nothing", func(t *testing.T) {
		l, shared, losses := taken(t)
		shared.holder, shared.err = "other", errors.New("connection refused")
		_, _, err := l.Get(t.Context())
		require.Error(t, err)
		require.True(t, l.held())
		require.Zero(t, *losses)
	})
	t.Run("not once it was given back, which is no loss", func(t *testing.T) {
		l, _, losses := taken(t)
		require.NoError(t, l.Update(t.Context(), resourcelock.LeaderElectionRecord{}))
		require.False(t, l.held())
		_, _, err := l.Get(t.Context())
		require.NoError(t, err)
		require.Zero(t, *losses)
	})
}

func TestOnlyWhoHoldsTheLeaseWrites(t *testing.T) {
	arrived := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived++ }))
	defer server.Close()
	held := false
	leading := func() context.Context {
		ctx, lose := context.WithCancel(t.Context())
		return fenced(ctx, func() bool { return held }, lose)
	}
	for sentence, tc := range map[string]struct {
		ctx    context.Context
		method string
		held   bool
		sent   bool
	}{
		"a leader writes":                   {leading(), http.MethodPatch, true, true},
		"one who was the leader does not":   {leading(), http.MethodPatch, false, false},
		"but reads":                         {leading(), http.MethodGet, false, true},
		"a write that needs no leader goes": {t.Context(), http.MethodPost, false, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			held, arrived = tc.held, 0
			request, err := http.NewRequestWithContext(tc.ctx, tc.method, server.URL, strings.NewReader("{}"))
			require.NoError(t, err)
			response, err := Fence{http.DefaultTransport}.RoundTrip(request)
			if !tc.sent {
				require.ErrorIs(t, err, errLeaseLost)
				require.Zero(t, arrived)
				require.Error(t, tc.ctx.Err(), "the work ends before anybody sees the refusal")
				return
			}
			require.NoError(t, tc.ctx.Err())
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, 1, arrived)
		})
	}
}

func TestAStandbySeesWhetherSomebodyRenewsTheLease(t *testing.T) {
	shared := &sharedLock{holder: "other", raw: []byte("1")}
	l := &Leader{lease: DefaultLeaseDuration}
	unconfirmed := func() time.Time {
		_, _, since := l.Known()
		return since
	}
	require.Zero(t, unconfirmed(), "before an election")
	lock := &lease{duration: l.lease, Interface: shared, lost: func() {}}
	l.lock.Store(lock)
	get := func() {
		_, _, err := lock.Get(t.Context())
		require.NoError(t, err)
	}
	get()
	require.Zero(t, unconfirmed())
	past := time.Now().Add(-2*l.lease - time.Second)
	lock.seen.Store(&past)
	get()
	require.Equal(t, past, unconfirmed(), "it is as it was")
	shared.raw = []byte("2")
	get()
	require.Zero(t, unconfirmed())
}

func TestALeaseThatIsAnEarlierOneTellsOfARestore(t *testing.T) {
	var told error
	l := &leases{restored: func(err error) { told = err }}
	for _, answer := range []struct {
		version  string
		err      error
		restored bool
	}{
		{version: "100"}, {version: "100"}, {version: "1000"}, {version: "20", err: errors.New("conflict")}, {version: "1001"}, {version: "999", restored: true}, {version: "1000"},
	} {
		told = nil
		_, err := l.check(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: LeaseName, ResourceVersion: answer.version}}, answer.err)
		require.Equal(t, answer.err, err)
		require.Equal(t, answer.restored, told != nil, answer.version)
	}
}
