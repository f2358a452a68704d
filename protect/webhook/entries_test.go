package webhook

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
)

// FuzzEntries compares the maps of objects with what decode reads into plain maps.
func FuzzEntries(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, `{"a":"YQ=="}`, `{ "a" : "YQ==" , "b":null }`, `{"a":"YQ==","a":"YQ=="}`, `{"a":"YQ==","\u0061":""}`, `{"a":1}`, `{"a":{}}`, `{"a":true}`, `{"a":[""]}`,
		`{"a":"\u00e9\n\"\\"}`, `{"\ud800":"WQ=\u003d"}`, "{\"a\xff\":\"b\xff\"}", `{"a":"Y\nQ=="}`, `{"a":"%"}`, `[]`, `""`, `"null"`, `5`, `{"a":"}"}`, ` {"a":",:"}`, `{"n":"nul"}`, `{`, ``,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var entries stringMap
		var plain map[string]string
		isRead := decode([]byte(text), &plain)
		require.Equal(t, isRead, decode([]byte(text), &entries))
		var asBytes textMap
		require.Equal(t, isRead, decode([]byte(text), &asBytes))
		if isRead {
			require.Equal(t, plain, map[string]string(entries))
			require.Len(t, asBytes, len(plain))
			for key, value := range plain {
				require.Equal(t, value, string(asBytes[key]))
			}
		}
		var decoded base64Map
		var plainBytes map[string][]byte
		isRead = decode([]byte(text), &plainBytes)
		if bytes.ContainsRune([]byte(text), '[') {
			return // decode also reads a list of numbers as bytes, which no API server sends
		}
		require.Equal(t, isRead, decode([]byte(text), &decoded))
		if isRead {
			require.Equal(t, plainBytes, map[string][]byte(decoded))
		}
	})
}

// FuzzAnswer compares responses with what encoding/json writes.
func FuzzAnswer(f *testing.F) {
	f.Add("u1", true, "", "", "", "rule", "blog", "")
	f.Add("u1", false, string(decide.ReasonProtected), "Secret \"a\" <b>\n", "", "rule", "b\\g", "again")
	f.Add("\x00\u2028", false, string(decide.ReasonUnreadable), "\xff", "warning", "é", "", "")
	f.Add("", false, string(decide.ReasonInternalError), "headwater", "one", "", "", "two")
	f.Fuzz(func(t *testing.T, uid string, allowed bool, reason, message, warning, key, value, another string) {
		verdict := decide.Verdict{Allowed: allowed, Reason: decide.Reason(reason), Message: message, Warning: warning}
		want := &admissionv1.AdmissionResponse{UID: types.UID(uid), Allowed: allowed}
		if key != "" {
			verdict.Audit = map[string]string{key: value, "reason": reason}
			want.AuditAnnotations = verdict.Audit
		}
		if another != "" {
			verdict.Warnings = []string{another, another}
		}
		for _, text := range append([]string{warning}, verdict.Warnings...) {
			if text != "" {
				want.Warnings = append(want.Warnings, text)
			}
		}
		if !allowed {
			want.Result = &metav1.Status{Status: metav1.StatusFailure, Message: message, Reason: metav1.StatusReasonForbidden, Code: 403}
			if verdict.Reason == decide.ReasonUnreadable || verdict.Reason == decide.ReasonInternalError {
				want.Result.Reason, want.Result.Code = metav1.StatusReasonInternalError, 500
			}
		}
		var out bytes.Buffer
		writeReview(&out, types.UID(uid), verdict)
		encoded, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Response: want,
		})
		require.NoError(t, err)
		var expected, got admissionv1.AdmissionReview
		require.NoError(t, json.Unmarshal(encoded, &expected))
		require.True(t, decode(out.Bytes(), &got), out.String())
		require.Equal(t, expected, got)
	})
}

func TestABufferThatIsReusedHoldsNoReview(t *testing.T) {
	buffer := bytes.NewBufferString(protecttest.OldSecretJSON)
	kept := buffer.Bytes()
	discard(buffer)
	require.Equal(t, make([]byte, len(protecttest.OldSecretJSON)), kept)
}

func TestUnreadFieldsMustBeUnique(t *testing.T) {
	for field, twice := range map[string]string{
		"managed fields": `"managedFields":[],"managedFields":[]`, "time of creation": `"creationTimestamp":null,"creationTimestamp":null`,
		"labels": `"labels":{"a":"b","a":"b"}`,
	} {
		t.Run(field, func(t *testing.T) {
			require.Nil(t, readObject("Secret", rawObject(`{"apiVersion":"v1","kind":"Secret","metadata":{`+twice+`}}`)))
		})
	}
	require.NotNil(t, readObject("Secret", rawObject(`{"apiVersion":"v1","kind":"Secret","metadata":{"managedFields":[]}}`)))
}
