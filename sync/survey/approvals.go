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
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// ApprovalsName is the ConfigMap in Headwater's own namespace that holds the
// users' approvals: for each rule name, an Approval in JSON.
const ApprovalsName = "headwater-approvals"

// approvalLasts is how long an approval of removals or leftovers is valid.
const approvalLasts = time.Hour

// Approval is a user's approval of the held changes of one rule.
type Approval struct {
	// At is when the user approved.
	At time.Time `json:"at"`
	// By is the user who approved. It is not verified: a user who may write the
	// ConfigMap can write another name.
	By string `json:"by,omitempty"`
	// Removals is how many clones may be removed.
	Removals int `json:"removals,omitempty"`
	// Sources are the sources without data whose clones may be emptied, each with
	// the resourceVersion that was approved.
	Sources map[string]string `json:"sources,omitempty"`
	// Leftovers requests what to do with the clones of a rule that is no longer in
	// the configuration.
	Leftovers *plan.Leftovers `json:"leftovers,omitempty"`
	// Deliveries are requests about the delivery of sources, by source.
	Deliveries map[string]delivery.Request `json:"deliveries,omitempty"`
}

// Empty reports whether a approves nothing.
func (a Approval) Empty() bool {
	return a.Removals == 0 && len(a.Sources) == 0 && a.Leftovers == nil && len(a.Deliveries) == 0
}

// IsUsedUpByRemovals reports whether the deletion of a clone may use up a.
func (a Approval) IsUsedUpByRemovals() bool { return a.Removals > 0 || a.Leftovers != nil }

// String says when a was given and which user gave it, for Events.
func (a Approval) String() string {
	if a.By == "" {
		return fmt.Sprintf("approved at %s by an unnamed user", a.At.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("approved at %s by user %q (name not verified)", a.At.UTC().Format(time.RFC3339), a.By)
}

// StoredApprovals is the cached content of the approvals ConfigMap.
type StoredApprovals struct {
	metav1.ObjectMeta
	ByRule map[string]Approval
}

// approvals reads the approvals ConfigMap from a cache.
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
		return nil, fmt.Errorf("object of type %T is not a ConfigMap", obj)
	}
	kept := &StoredApprovals{ObjectMeta: configMap.ObjectMeta, ByRule: map[string]Approval{}}
	kept.ManagedFields = nil
	for rule, text := range configMap.Data {
		var approval Approval
		if err := json.Unmarshal([]byte(text), &approval); err != nil {
			log.Warn("approval ignored because it is not valid JSON; run `headwater approve` again",
				zap.String("rule", rule), zap.Error(err))
			continue
		}
		kept.ByRule[rule] = approval
	}
	return kept, nil
}

// Of returns the valid approval for rule; empty if there is none.
func (a *approvals) Of(rule string) Approval {
	approval := a.All()[rule]
	if a.now().Sub(approval.At) > approvalLasts {
		approval.Removals, approval.Leftovers = 0, nil
	}
	return approval
}

// All returns the stored approvals by rule, including expired ones.
func (a *approvals) All() map[string]Approval {
	all, found := a.View.Get(a.Ref.Namespace, a.Ref.Name)
	if !found {
		return nil
	}
	return all.ByRule
}

// SetApproval stores approval for rule in Headwater's namespace. An empty approval
// deletes the stored one.
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
