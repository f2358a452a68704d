package notify

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// maxPause is the maximum time between two attempts.
	maxPause = time.Minute
	// giveUp is how long a report is retried. After that, newer reports say as
	// much.
	giveUp = 10 * time.Minute
)

// sender sends reports to one receiver, one after the other.
type sender struct {
	receiver Receiver
	outbox   *outbox
	stop     context.CancelFunc
	client   *http.Client
	clock    clock.Clock
	results  *prometheus.CounterVec
	log      *zap.Logger
}

// senderKey identifies a sender. A receiver that changes gets a new sender.
type senderKey struct {
	place        int
	url, urlFile string
}

func keyOf(i int, r Receiver) senderKey { return senderKey{i, r.URL, r.URLFile} }

func (s *sender) run(ctx context.Context) {
	for {
		one, found := s.outbox.get(ctx)
		if !found {
			return
		}
		s.deliver(ctx, one)
	}
}

// deliver retries a report until it is sent, permanently rejected, or older
// than giveUp.
func (s *sender) deliver(ctx context.Context, one report) {
	began := s.clock.Now()
	pauses := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxPause}
	for tries := 1; ctx.Err() == nil; tries++ {
		problem := post(ctx, s.client, s.receiver, one.text)
		if problem == nil {
			s.results.WithLabelValues(sent).Inc()
			s.log.Debug("report sent", zap.String("topic", string(one.topic)))
			return
		}
		if ctx.Err() != nil {
			return
		}
		pause := max(pauses.Step(), problem.after)
		if !problem.passes || s.clock.Since(began)+pause > giveUp {
			s.results.WithLabelValues(failed).Inc()
			s.log.Error("send report: giving up", zap.String("topic", string(one.topic)), zap.Int("tries", tries), zap.Error(problem))
			return
		}
		if tries == 1 {
			s.log.Warn("send report: retrying with backoff", zap.String("topic", string(one.topic)), zap.Error(problem))
		}
		timer := s.clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}
