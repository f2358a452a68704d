package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

func TestHeadwatersAccountIsTheOneWithItsPermissions(t *testing.T) {
	bound := func(binding, namespace, account string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: binding},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}},
		}
	}
	for sentence, test := range map[string]struct {
		bindings []rbacv1.ClusterRoleBinding
		want     string
	}{
		"the chart's own":             {[]rbacv1.ClusterRoleBinding{bound("headwater", "hw", "headwater")}, "headwater"},
		"one that a value names":      {[]rbacv1.ClusterRoleBinding{bound("headwater", "hw", "platform")}, "platform"},
		"one of another binding":      {[]rbacv1.ClusterRoleBinding{bound("others", "hw", "platform")}, "headwater"},
		"one of another namespace":    {[]rbacv1.ClusterRoleBinding{bound("headwater", "other", "platform")}, "headwater"},
		"no installation, or no RBAC": {nil, "headwater"},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, protectspec.ServiceAccount{Namespace: "hw", Name: test.want}, ownAccount("hw", test.bindings))
		})
	}
}
