package property

import (
	"fmt"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// tamper changes the data of a clone, takes its revision off, or writes another number: of a
// revision with other content, or one that was never recorded.
func (w *deliveryWorld) tamper(m *model) {
	namespace := w.anyNamespace()
	others := w.recordedIf(m, func(r recorded) bool { return r.value != m.have[namespace] })
	forged := pick(w, append(others, recorded{number: 1_000_000})).number
	body := pick(w, []string{
		fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, mark.Revision),
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, mark.Revision, forged),
		`{"data":{"` + valueKey + `":"ZHJpZnQ="}}`,
	})
	w.Logf("%s: tamper with the clone in %s: %s", m.rule, namespace, body)
	if strings.HasPrefix(body, `{"data"`) {
		m.allow(namespace, "drift")
		m.allow(namespace, "ZHJpZnQ=")
	}
	w.patchObject(m, namespace, sharedName, []byte(body))
	if m.stages { // a clone has a revision if it says so and has its content
		m.give(namespace, m.assigned(w, namespace))
	}
}

// forgeRecord changes what the object that records a revision says: evidence of a process
// that never was, or a number that never was recorded.
func (w *deliveryWorld) forgeRecord() {
	m := pick(w, w.models)
	all := w.recordedIf(m, func(r recorded) bool {
		underWay := r.verdict == revisions.Delivering || r.verdict == revisions.Held
		return !underWay || !w.anySick() // evidence says as well what failed before
	})
	if len(all) == 0 {
		return
	}
	forged, body := pick(w, all[max(0, len(all)-3):]), fmt.Sprintf(`{"metadata":{"labels":{%q:"1000000"}}}`, mark.Revision)
	if w.oneIn(2) {
		evidence := pick(w, []string{
			"{",
			`{"v":9}`,
			`{"v":1,"by":"nobody","look":"rest","upTo":"999999999","readers":1,"stages":[{"name":"canary","ran":9,"namespaces":1,"proven":1}]}`,
		})
		body = fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, mark.Evidence, evidence)
	}
	w.Logf("%s: forge revision %d: %s", m.rule, forged.number, body)
	w.patchObject(m, lab.Namespace, forged.name, []byte(body))
}
