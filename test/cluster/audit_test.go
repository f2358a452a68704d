package cluster

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestEveryRequestIsCountedOnce(t *testing.T) {
	c := Shared(t)
	config := c.ConfigFor("counted", mastersGroup)
	config.UserAgent = "counter/1"
	configMaps := clientOf(t, config).CoreV1().ConfigMaps("default")
	began := c.Mark()
	byCounter := func(r Request) bool { return r.User == "counted" }

	const rounds = 20
	for range rounds {
		mark := c.Mark()
		_, err := configMaps.Create(t.Context(), configMap("counted"), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = configMaps.Patch(t.Context(), "counted", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = configMaps.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		require.NoError(t, err)
		watch, err := configMaps.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		_, err = configMaps.Get(t.Context(), "no-such", metav1.GetOptions{})
		require.Error(t, err)
		require.NoError(t, configMaps.Delete(t.Context(), "counted", metav1.DeleteOptions{}))

		requests, err := c.Since(t.Context(), mark, byCounter)
		require.NoError(t, err)
		require.Equal(t, []string{"create", "patch", "list", "watch", "get", "delete"}, verbs(requests))
		create, list, get := requests[0], requests[2], requests[4]
		require.Equal(t, "/configmaps/default/counted", create.Group+"/"+create.Resource+"/"+create.Namespace+"/"+create.Name)
		require.Equal(t, 201, create.Code)
		require.Equal(t, "counter/1", create.UserAgent)
		require.False(t, create.Time.IsZero())
		require.Contains(t, list.URI, "resourceVersion=0")
		require.Equal(t, 404, get.Code)
		watch.Stop()
	}

	writes, err := c.Since(t.Context(), began, func(r Request) bool { return byCounter(r) && r.IsWrite() })
	require.NoError(t, err)
	require.Len(t, writes, 3*rounds)
}

func TestTheControlPlanesOwnReadsAreLeftOut(t *testing.T) {
	c := Shared(t)
	requests, err := c.Requests(t.Context(), nil)
	require.NoError(t, err)
	require.NotEmpty(t, requests)
	for _, request := range requests {
		if request.User == "system:apiserver" || request.User == componentUser(Scheduler) {
			require.True(t, request.IsWrite(), "%+v", request)
		}
	}
}

func TestALineThatIsStillBeingWrittenIsLeftAlone(t *testing.T) {
	log := `{"verb":"get","user":{"username":"a"},"impersonatedUser":{"username":"b"}}` + "\n" + `{"verb":"li`
	requests, err := readRequests(t.Context(), bufio.NewReader(strings.NewReader(log)), nil)
	require.NoError(t, err)
	require.Equal(t, []Request{{Verb: "get", User: "b"}}, requests)

	_, err = readRequests(t.Context(), bufio.NewReader(strings.NewReader("no json\n")), nil)
	require.Error(t, err)
}

func TestAMarkMayBeWithinALine(t *testing.T) {
	c := &Cluster{dir: t.TempDir()}
	first, second := `{"verb":"get"}`+"\n", `{"verb":"list"}`+"\n"
	require.NoError(t, os.WriteFile(c.path(auditLogFile), []byte(first+second), 0o600))
	for mark, want := range map[Mark][]string{
		0:                              {"get", "list"},
		1:                              {"list"},
		Mark(len(first) - 1):           {"list"},
		Mark(len(first)):               {"list"},
		Mark(len(first) + 1):           nil,
		Mark(len(first) + len(second)): nil,
	} {
		requests, err := c.Since(t.Context(), mark, nil)
		require.NoError(t, err)
		require.Equal(t, want, verbs(requests), "from %d on", mark)
	}
}

func verbs(requests []Request) []string {
	var verbs []string
	for _, request := range requests {
		verbs = append(verbs, request.Verb)
	}
	return verbs
}
