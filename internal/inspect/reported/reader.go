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
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// ErrNotInstalled is the error of a cluster that does not serve RuleStatuses.
var ErrNotInstalled = errors.New("the CustomResourceDefinition of RuleStatuses is not installed; apply deploy/crd.yaml")

// errUnknownRule is the error of a rule without a RuleStatus.
var errUnknownRule = errors.New("has no RuleStatus; does the configuration have the rule, and does Headwater run?")

// waitInterval is how often Wait reads.
const waitInterval = time.Second

// reader reads RuleStatuses.
type reader struct {
	clients  *kube.Clients
	statuses dynamic.ResourceInterface
	// own is the namespace that Headwater runs in, and user who runs the command.
	own, user string
}

// Open connects. It fails if the API server cannot be reached.
func Open(ctx context.Context, options inspect.Options) (*reader, error) {
	clients, err := kube.Connect(options.Kubeconfig, options.UserAgent)
	if err != nil {
		return nil, err
	}
	user, err := kube.WhoAmI(ctx, clients)
	return &reader{clients: clients, statuses: clients.Dynamic.Resource(rulestatus.GVR), own: options.Own, user: user.Username}, err
}

// Read returns the state of rule, or of every rule if rule is empty.
func (r *reader) Read(ctx context.Context, rule string) (Report, error) {
	objects, err := r.objects(ctx, rule)
	if err != nil {
		return Report{}, err
	}
	report := Report{Rules: make([]ruleReport, 0, len(objects))}
	for _, object := range objects {
		status, err := decode(object)
		if err != nil {
			return Report{}, err
		}
		report.Rules = append(report.Rules, ruleReport{object.GetName(), status})
	}
	slices.SortFunc(report.Rules, func(a, b ruleReport) int { return strings.Compare(a.Name, b.Name) })
	report.Confirmation = inspect.ReadConfirmation(ctx, r.clients, r.own)
	report.Attention = report.attention()
	return report, nil
}

func decode(object unstructured.Unstructured) (rulestatus.Status, error) {
	var decoded rulestatus.RuleStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &decoded); err != nil {
		return rulestatus.Status{}, fmt.Errorf("read RuleStatus %s: %w", object.GetName(), err)
	}
	return decoded.Status, nil
}

// status returns the RuleStatus of rule.
func (r *reader) status(ctx context.Context, rule string) (rulestatus.Status, error) {
	objects, err := r.objects(ctx, rule)
	if err != nil {
		return rulestatus.Status{}, err
	}
	return decode(objects[0])
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
		return fmt.Errorf("%w; bind ClusterRole headwater-view", err)
	case apierrors.IsNotFound(err) && rule != "" && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == rule:
		return fmt.Errorf("rule %q %w", rule, errUnknownRule)
	case apierrors.IsNotFound(err):
		return ErrNotInstalled
	}
	return fmt.Errorf("read RuleStatuses: %w", err)
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
