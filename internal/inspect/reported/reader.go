package reported

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// ErrNotInstalled is the error of a cluster that does not serve RuleStatuses.
var ErrNotInstalled = errors.New("the CustomResourceDefinition of RuleStatuses is not installed")

// errUnknownRule is the error of a rule without a RuleStatus.
var errUnknownRule = errors.New("has no RuleStatus; does the configuration have the rule, and does Headwater run?")

// waitInterval is how often Wait reads.
const waitInterval = time.Second

// reader reads RuleStatuses.
type reader struct {
	clients  *kube.Clients
	statuses dynamic.ResourceInterface
	// own is the namespace that Headwater runs in.
	own string
}

// Open connects. It fails if the API server cannot be reached.
func Open(ctx context.Context, options inspect.Options) (*reader, error) {
	clients, err := kube.Connect(options.Kubeconfig, options.UserAgent)
	if err != nil {
		return nil, err
	}
	_, err = kube.WhoAmI(ctx, clients)
	return &reader{clients: clients, statuses: clients.Dynamic.Resource(rulestatus.GVR), own: options.Own}, err
}

// Read returns the state of rule, or of every rule if rule is empty.
func (r *reader) Read(ctx context.Context, rule string) (Report, error) {
	objects, err := r.objects(ctx, rule)
	if err != nil {
		return Report{}, err
	}
	report := Report{Leader: r.leader(ctx), Rules: make([]ruleReport, 0, len(objects))}
	for _, object := range objects {
		var status rulestatus.RuleStatus
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status); err != nil {
			return Report{}, fmt.Errorf("read RuleStatus %s: %w", object.GetName(), err)
		}
		report.Rules = append(report.Rules, ruleReport{object.GetName(), status.Status})
	}
	slices.SortFunc(report.Rules, func(a, b ruleReport) int { return strings.Compare(a.Name, b.Name) })
	report.Attention = report.attention()
	return report, nil
}

func (r *reader) objects(ctx context.Context, rule string) ([]unstructured.Unstructured, error) {
	if rule == "" {
		list, err := r.statuses.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, r.explained(err, "")
		}
		return list.Items, nil
	}
	object, err := r.statuses.Get(ctx, rule, metav1.GetOptions{})
	if err != nil {
		return nil, r.explained(err, rule)
	}
	return []unstructured.Unstructured{*object}, nil
}

// explained returns what err means for a read of rule, or of all rules.
func (r *reader) explained(err error, rule string) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; bind ClusterRole headwater-view, or use --survey", err)
	case apierrors.IsNotFound(err) && rule != "" && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == rule:
		return fmt.Errorf("rule %q %w", rule, errUnknownRule)
	case apierrors.IsNotFound(err):
		return ErrNotInstalled
	}
	return fmt.Errorf("read RuleStatuses: %w", err)
}

// leader returns nil if it is not known whether a replica leads: because the user may
// not read the Lease, or because there is none.
func (r *reader) leader(ctx context.Context) *inspect.Leadership {
	lease, err := r.clients.Typed.CoordinationV1().Leases(r.own).Get(ctx, leader.LeaseName, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	found := inspect.LeadershipOf(lease, time.Now())
	return &found
}

// Wait returns the first Report that needs no attention, or the last one after timeout
// or when ctx ends. A timeout of 0 means no limit. Wait writes to progress what it waits
// for. It also waits for the RuleStatus of rule, or of any rule if rule is empty.
func (r *reader) Wait(ctx context.Context, rule string, timeout time.Duration, progress io.Writer) (Report, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	said, last := "", Report{Attention: []string{"the first answer of the API server"}}
	err := wait.PollUntilContextCancel(ctx, waitInterval, true, func(ctx context.Context) (bool, error) {
		read, err := r.Read(ctx, rule)
		switch {
		case errors.Is(err, errUnknownRule):
			read.Attention = []string{err.Error()}
		case err != nil:
			return false, err
		case len(read.Rules) == 0:
			read.Attention = append(read.Attention, "no rule has a RuleStatus yet")
		}
		last = read
		text := strings.Join(last.Attention, "; ")
		if text != "" && text != said {
			said = text
			_, _ = fmt.Fprintln(progress, "waiting for:", text)
		}
		return text == "", nil
	})
	if ctx.Err() != nil { // whatever failed: the last Report says what is missing
		err = nil
	}
	return last, err
}
