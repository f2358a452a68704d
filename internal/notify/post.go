package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// postTimeout limits one attempt, including reading the response.
	postTimeout = 10 * time.Second
	// maxAnswer limits the bytes read of a response, which are discarded.
	maxAnswer = 64 << 10
	// maxURL limits the bytes read of a URL file.
	maxURL = 16 << 10
)

// failedError is why an attempt failed. It contains nothing of the URL but the
// host. It never quotes errors of services, because they may contain the URL or
// the response.
type failedError struct {
	why string
	// passes is true if a retry may succeed. after is the minimum time until
	// then.
	passes bool
	after  time.Duration
}

func (f *failedError) Error() string { return f.why }

// client returns the HTTP client for receivers. It uses the proxy of the
// environment and follows no redirects.
func client() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// doer adapts a function to types.HTTPClient.
type doer func(*http.Request) (*http.Response, error)

// Do calls d.
func (d doer) Do(request *http.Request) (*http.Response, error) { return d(request) }

// post makes one attempt to send text to receiver.
func post(ctx context.Context, by *http.Client, receiver Receiver, text string) *failedError {
	raw, failed := receiver.address()
	if failed != nil {
		return failed
	}
	to, err := locate(raw)
	if err != nil {
		return &failedError{why: "its URL " + err.Error(), passes: receiver.URLFile != ""}
	}
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	var outcome *failedError
	to.SetHTTPClient(doer(func(request *http.Request) (*http.Response, error) {
		response, err := by.Do(request.WithContext(ctx)) //nolint:gosec // the administrator configures the URL
		if err != nil {
			outcome = unanswered(err)
			return nil, outcome
		}
		outcome = answered(response)
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
		return response, nil
	}))
	err = to.Send(text, &types.Params{})
	switch {
	case outcome != nil:
		return outcome
	case ctx.Err() != nil:
		return unanswered(ctx.Err())
	case err != nil:
		return &failedError{why: fmt.Sprintf("%s did not take the report; see to the token and the channel in its URL", to.GetID())}
	}
	return nil
}

// address returns the current URL of r.
func (r Receiver) address() (string, *failedError) {
	if r.URLFile == "" {
		return r.URL, nil
	}
	file, err := os.Open(r.URLFile)
	if err != nil {
		return "", &failedError{why: fmt.Sprintf("its URL cannot be read: %v", err), passes: true}
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxURL))
	if err != nil {
		return "", &failedError{why: fmt.Sprintf("its URL cannot be read: %v", err), passes: true}
	}
	return strings.TrimSpace(string(content)), nil
}

func answered(response *http.Response) *failedError {
	status := response.StatusCode
	if status/100 == 2 {
		return nil
	}
	failed := &failedError{
		why:    fmt.Sprintf("it answered %d %s", status, http.StatusText(status)),
		passes: status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout,
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		failed.after = min(time.Duration(seconds)*time.Second, maxPause)
	}
	return failed
}

// unanswered describes why no response arrived. It only quotes errors that are
// known to contain nothing but host names.
func unanswered(err error) *failedError {
	var (
		lookup      *net.DNSError
		connection  *net.OpError
		certificate *tls.CertificateVerificationError
		host        x509.HostnameError
	)
	why := "the request failed"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("it did not answer within %s", postTimeout)
	case errors.As(err, &lookup):
		why = fmt.Sprintf("its host %s cannot be looked up", lookup.Name)
	case errors.As(err, &host), errors.As(err, &certificate):
		why = "its certificate is not trusted"
	case errors.As(err, &connection):
		why = connection.Error()
	}
	return &failedError{why: why, passes: true}
}

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
