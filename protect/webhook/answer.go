package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/protect/decide"
)

// writeReview writes the AdmissionReview that answers the request uid. It writes the
// JSON itself, because reflection takes most of the allocations of a short answer.
func writeReview(out *bytes.Buffer, uid types.UID, verdict decide.Verdict) {
	out.WriteString(`{"kind":"` + reviewKind + `","apiVersion":"` + reviewVersion + `","response":{"uid":`)
	writeString(out, string(uid))
	out.WriteString(`,"allowed":`)
	out.WriteString(strconv.FormatBool(verdict.Allowed))
	if !verdict.Allowed {
		writeStatus(out, verdict)
	}
	separator := `,"auditAnnotations":{`
	for key, value := range verdict.Audit {
		out.WriteString(separator)
		writeString(out, key)
		out.WriteByte(':')
		writeString(out, value)
		separator = ","
	}
	if len(verdict.Audit) > 0 {
		out.WriteByte('}')
	}
	writeWarnings(out, verdict)
	out.WriteString("}}")
}

// writeStatus writes the metav1.Status of a denial.
func writeStatus(out *bytes.Buffer, verdict decide.Verdict) {
	reason, code := metav1.StatusReasonForbidden, http.StatusForbidden
	if verdict.Reason == decide.ReasonUnreadable || verdict.Reason == decide.ReasonInternalError {
		reason, code = metav1.StatusReasonInternalError, http.StatusInternalServerError
	}
	out.WriteString(`,"status":{"metadata":{},"status":"` + metav1.StatusFailure + `","message":`)
	writeString(out, verdict.Message)
	out.WriteString(`,"reason":`)
	writeString(out, string(reason))
	out.WriteString(`,"code":`)
	out.WriteString(strconv.Itoa(code))
	out.WriteByte('}')
}

func writeWarnings(out *bytes.Buffer, verdict decide.Verdict) {
	if verdict.Warning == "" && len(verdict.Warnings) == 0 {
		return
	}
	out.WriteString(`,"warnings":[`)
	if verdict.Warning != "" {
		writeString(out, verdict.Warning)
	}
	for i, warning := range verdict.Warnings {
		if i > 0 || verdict.Warning != "" {
			out.WriteByte(',')
		}
		writeString(out, warning)
	}
	out.WriteByte(']')
}

// writeString writes text as a JSON string.
func writeString(out *bytes.Buffer, text string) {
	if strings.IndexFunc(text, needsEscape) < 0 {
		out.WriteByte('"')
		out.WriteString(text)
		out.WriteByte('"')
		return
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	out.Write(quoted)
}

// needsEscape reports whether the JSON form of r can differ from r.
func needsEscape(r rune) bool {
	return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r)
}
