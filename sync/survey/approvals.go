package survey

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// ApprovalsName is the ConfigMap of Headwater's own namespace in which people
// approve what is held: an Approval in JSON under the rule's name.
const ApprovalsName = "headwater-approvals"

// approvalLasts bounds how long an Approval of removals that are not due yet,
// or not any more, can be taken for one of the next, and how long one of
// leftovers waits for a leader.
const approvalLasts = time.Hour

// Approval is a person's word that what is held of one rule is meant.
type Approval struct {
	At time.Time `json:"at"`
	// By is the user who approved. It is not verified: a user who may write the
	// ConfigMap can write another name.
	By string `json:"by,omitempty"`
	// Removals is how many clones may be removed.
	Removals int `json:"removals,omitempty"`
	// Sources are the emptied sources whose clones may be emptied too, each
	// with the resourceVersion that was approved.
	Sources map[string]string `json:"sources,omitempty"`
	// Leftovers is what becomes of the clones of a rule that the configuration no
	// longer has.
	Leftovers *plan.Leftovers `json:"leftovers,omitempty"`
}

// Empty reports whether a approves nothing.
func (a Approval) Empty() bool { return a.Removals == 0 && len(a.Sources) == 0 && a.Leftovers == nil }

// IsUsedUpByRemovals reports whether what a approves may be done once a clone is
// gone.
func (a Approval) IsUsedUpByRemovals() bool { return a.Removals > 0 || a.Leftovers != nil }

// String says when and by whom a was given.
func (a Approval) String() string {
	if a.By == "" {
		return fmt.Sprintf("approved at %s by somebody who gave no name", a.At.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("approved at %s by user %q, a name that Headwater cannot verify", a.At.UTC().Format(time.RFC3339), a.By)
}

// StoredApprovals is what is cached of the ConfigMap.
type StoredApprovals struct {
	metav1.ObjectMeta
	ByRule map[string]Approval
}

// approvals caches the approvals.
type approvals struct {
	View *informers.View[*StoredApprovals]
	Ref  object.Ref
	now  func() time.Time
}

func newApprovals(clients *kube.Clients, caches *informers.Caches, ownNamespace string, log *zap.Logger) (*approvals, error) {
	informer := coreinformers.NewFilteredConfigMapInformer(clients.Typed, ownNamespace, 0, cache.Indexers{}, informers.Named(ApprovalsName))
	view, err := informers.NewView("approvals", informer, log, func(obj any) (*StoredApprovals, error) { return keepApprovals(obj, log) })
	if err != nil {
		return nil, err
	}
	caches.Add(view, informers.Always)
	return &approvals{
		View: view, now: time.Now,
		Ref: object.Ref{Kind: object.ConfigMap, Namespace: ownNamespace, Name: ApprovalsName},
	}, nil
}

func keepApprovals(obj any, log *zap.Logger) (*StoredApprovals, error) {
	configMap, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("object of type %T is no ConfigMap", obj)
	}
	kept := &StoredApprovals{ObjectMeta: configMap.ObjectMeta, ByRule: map[string]Approval{}}
	kept.ManagedFields = nil
	for rule, text := range configMap.Data {
		var approval Approval
		if err := json.Unmarshal([]byte(text), &approval); err != nil {
			log.Warn("approval cannot be read and counts for nothing; run headwater approve again",
				zap.String("rule", rule), zap.Error(err))
			continue
		}
		kept.ByRule[rule] = approval
	}
	return kept, nil
}

// Of returns the approval of what is held of rule.
func (a *approvals) Of(rule string) Approval {
	approval := a.All()[rule]
	if a.now().Sub(approval.At) > approvalLasts {
		approval.Removals, approval.Leftovers = 0, nil
	}
	return approval
}

// All are those that are written down, by rule, also what counts for nothing
// any more.
func (a *approvals) All() map[string]Approval {
	all, found := a.View.Get(a.Ref.Namespace, a.Ref.Name)
	if !found {
		return nil
	}
	return all.ByRule
}

// SetApproval records approval for rule in ownNamespace; an empty one takes it
// back.
func SetApproval(ctx context.Context, client kubernetes.Interface, ownNamespace, rule string, approval Approval) error {
	text, err := json.Marshal(approval)
	if err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	configMaps := client.CoreV1().ConfigMaps(ownNamespace)
	current, err := configMaps.Get(ctx, ApprovalsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if approval.Empty() {
			return nil
		}
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ApprovalsName}, Data: map[string]string{rule: string(text)}}
		_, err = configMaps.Create(ctx, created, metav1.CreateOptions{FieldManager: mark.FieldManager})
	} else if err == nil {
		if current.Data == nil {
			current.Data = map[string]string{}
		}
		current.Data[rule] = string(text)
		if approval.Empty() {
			delete(current.Data, rule)
		}
		_, err = configMaps.Update(ctx, current, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("record the approval in ConfigMap %s/%s: %w", ownNamespace, ApprovalsName, err)
	}
	return nil
}
