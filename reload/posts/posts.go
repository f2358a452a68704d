package posts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

const (
	workers = 16
	timeout = 2 * time.Second
	// maxTries is the number of attempts. The pause between them triples.
	maxTries = 4
	// delay is longer than a kubelet takes to write refreshed files, 0.3 to 0.7 s.
	delay = time.Second
)

// Sender sends requests without a body to pods, in a queue of its own. Unsent requests
// are lost with the process.
type Sender struct {
	Pods    *informers.View[*workload.Pod]
	Events  *events.Recorder
	Results *prometheus.CounterVec
	Log     *zap.Logger
	Queue   *queue.Runner[post]
	client  *http.Client
}

// post is one request to one pod.
type post struct {
	pod kinds.Key
	uid types.UID
	spec.HTTPPost
	tries int
}

// Init completes a Sender whose exported fields but Queue are set.
func (s *Sender) Init(registry *prometheus.Registry) *Sender {
	s.client = &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DisableKeepAlives: true}, // one request per pod, and no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.Queue = queue.New(queue.Options{Name: "reload-posts", Workers: workers, Log: s.Log, Registry: registry}, s.attempt)
	return s
}

// Send enqueues the requests to pod, after its kubelet had time to write the files.
func (s *Sender) Send(pod *workload.Pod, requests []spec.HTTPPost) {
	for _, request := range requests {
		s.Queue.After(post{pod: pod.Key(), uid: pod.UID, HTTPPost: request}, delay)
	}
}

// attempt sends one request, and schedules the next attempt if it fails. It drops
// requests to deleted pods.
func (s *Sender) attempt(ctx context.Context, one post) error {
	pod, found := s.Pods.Get(one.pod.Namespace, one.pod.Name)
	if !found || pod.UID != one.uid || !pod.Running() {
		return nil
	}
	err := s.request(ctx, pod.IP, one.HTTPPost)
	one.tries++
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		s.Results.WithLabelValues(report.PostDelivered).Inc()
	case one.tries < maxTries:
		s.Queue.After(one, one.backoff())
	default:
		s.Results.WithLabelValues(report.PostFailed).Inc()
		s.Log.Warn("POST to a refreshed pod failed", zap.Stringer("pod", one.pod), zap.Error(err))
		s.Events.Record(postFailed(one, err))
	}
	return nil
}

// backoff is the pause after the attempts so far.
func (one post) backoff() time.Duration {
	pause := time.Second
	for range one.tries - 1 {
		pause *= 3
	}
	return pause
}

func (s *Sender) request(ctx context.Context, ip string, to spec.HTTPPost) error {
	if ip == "" {
		return fmt.Errorf("the pod has no address yet")
	}
	host := net.JoinHostPort(ip, strconv.Itoa(to.Port))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+to.Path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "headwater")
	response, err := s.client.Do(request)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err // the error without the URL
	}
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	return nil
}

func postFailed(one post, err error) events.Event {
	meta := &metav1.ObjectMeta{Namespace: one.pod.Namespace, Name: one.pod.Name, UID: one.uid}
	return events.Event{
		About: events.Reference("v1", string(kinds.KindPod), meta), Warning: true, Reason: "PostFailed", Action: "Post",
		Note: fmt.Sprintf("Its files were refreshed, but POST %.100s at port %d failed %d times: %.200s", one.Path, one.Port, one.tries, err),
	}
}
