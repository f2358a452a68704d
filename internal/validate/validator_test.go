package validate_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/validate"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// certificate is valid from one time to another, both relative to now.
func certificate(t testing.TB, from, to time.Duration) string {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(from), NotAfter: now.Add(to)}
	der, err := x509.CreateCertificate(nil, &template, &template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func block(kind, content string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(content)}))
}

func TestAFormatIsChecked(t *testing.T) {
	good, later := certificate(t, -time.Hour, 100*time.Hour), certificate(t, time.Hour, 100*time.Hour)
	expired := certificate(t, -2*time.Hour, -time.Hour)
	auth := base64.StdEncoding.EncodeToString([]byte("user:password"))
	regex := validate.Check{Is: validate.Regex, Pattern: "debug|info"}
	is := func(format validate.Format) validate.Check { return validate.Check{Is: format} }
	for name, test := range map[string]struct {
		check validate.Check
		value string
		want  string // empty if the value is as it must be
	}{
		"YAML":                              {is(validate.YAML), "a: 1\nb: [x, 2020-01-01, .inf]\n", ""},
		"YAML with an alias and a merge":    {is(validate.YAML), "a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: *a\n", ""},
		"YAML of several documents":         {is(validate.YAML), "a: 1\n---\na: 2\n", ""},
		"YAML that is empty":                {is(validate.YAML), "", ""},
		"YAML with a key that is a list":    {is(validate.YAML), "? [a]\n: 1\n", ""},
		"YAML with an open bracket":         {is(validate.YAML), "a: 1\nb: [1\nc: 2\n", "is not valid YAML (near line 1)"},
		"YAML with a bad second document":   {is(validate.YAML), "a: 1\n---\n\tb: 1\n", "is not valid YAML (near line 3)"},
		"YAML with a key twice":             {is(validate.YAML), "a: 1\nb:\n  c: 1\n  c: 2\n", "has the same key twice in one mapping (line 4)"},
		"YAML with an anchor that is not":   {is(validate.YAML), "a: *secret\n", "is not valid YAML"},
		"YAML with an anchor in itself":     {is(validate.YAML), "a: &a [*a]\n", "is nested too deeply"},
		"YAML that grows without end":       {is(validate.YAML), bomb(), "repeats too much by YAML aliases"},
		"YAML that is nested without end":   {is(validate.YAML), strings.Repeat("[", 500) + strings.Repeat("]", 500), "is nested too deeply"},
		"JSON":                              {is(validate.JSON), `{"a": [1, {"a": "b"}], "b": {"a": null}}`, ""},
		"JSON that is cut":                  {is(validate.JSON), "{\n\"a\": 1,\n", "is not valid JSON (line 3)"},
		"JSON with more behind it":          {is(validate.JSON), "{}\n{}", "is not valid JSON (line 2)"},
		"JSON that is empty":                {is(validate.JSON), "", "is not valid JSON (line 1)"},
		"JSON with a key twice":             {is(validate.JSON), "{\"a\": {\"b\": \"b\"},\n\"c\": [{\"d\": 1,\n\"d\": 2}]}", "has the same key twice in one mapping (line 3)"},
		"JSON in another encoding":          {is(validate.JSON), "\"\xff\"", "is not valid JSON"},
		"TOML":                              {is(validate.TOML), "a = 1\n[b]\nc = 2020-01-01\n", ""},
		"TOML without a value":              {is(validate.TOML), "a = 1\nb =\n", "is not valid TOML (line 2)"},
		"TOML with a key twice":             {is(validate.TOML), "a = 1\na = 2\n", "is not valid TOML (line 2)"},
		"PEM":                               {is(validate.PEM), "a note\n" + block("A", "x") + block("B", "y"), ""},
		"PEM without a block":               {is(validate.PEM), "secret", "holds no PEM block"},
		"PEM with a damaged block":          {is(validate.PEM), block("A", "x") + strings.Replace(block("B", "y"), "\n", "\n!", 1), "is not valid PEM: 1 of its 2 blocks can be read"},
		"Certificate":                       {is(validate.Certificate), good + later, ""},
		"Certificate beside its key":        {is(validate.Certificate), block("PRIVATE KEY", "x") + good, ""},
		"Certificate that expired":          {is(validate.Certificate), expired + good, "holds a certificate that has expired"},
		"Certificate that is not valid yet": {is(validate.Certificate), later, "holds a certificate that is not valid before 2026-05-01T13:00:00Z"},
		"Certificate that is valid enough":  {validate.Check{Is: validate.Certificate, MinValidity: hours(99)}, good, ""},
		"Certificate that expires soon":     {validate.Check{Is: validate.Certificate, MinValidity: hours(101)}, good, "holds a certificate that expires in less than 101h0m0s"},
		"Certificate that is a key":         {is(validate.Certificate), block("PRIVATE KEY", "x"), "holds no certificate"},
		"Certificate whose issuer is bad":   {is(validate.Certificate), good + block("CERTIFICATE", "x"), "holds a certificate that cannot be read (number 2)"},
		"DockerConfig":                      {is(validate.DockerConfig), `{"auths": {"r.example.com": {"auth": "` + auth + `"}}}`, ""},
		"DockerConfig of the old form":      {is(validate.DockerConfig), `{"r.example.com": {"username": "a", "password": "b"}}`, ""},
		"DockerConfig without a registry":   {is(validate.DockerConfig), `{"auths": {}}`, "is not a Docker config: it has no registry under auths"},
		"DockerConfig that is a list":       {is(validate.DockerConfig), `[]`, "is not a Docker config: it has no registry under auths"},
		"DockerConfig not in base64":        {is(validate.DockerConfig), `{"auths": {"r": {"auth": "user:password"}}}`, "is not a Docker config: a registry has no usable credentials"},
		"DockerConfig that is not JSON":     {is(validate.DockerConfig), `{"auths"`, "is not valid JSON (line 1)"},
		"Regex":                             {regex, "info", ""},
		"Regex with a final newline":        {regex, "info\n", ""},
		"Regex that matches a part":         {regex, "information", "does not match its pattern"},
		"Regex with a second line":          {regex, "info\n\n", "does not match its pattern"},
		"Regex of bytes":                    {regex, "\xff", "is not text"},
		"a value beyond any limit":          {is(validate.YAML), strings.Repeat("a", 1<<20+1), "is larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, messageOf(t, test.check, test.value))
		})
	}
}

// messageOf returns the only message about value.
func messageOf(t *testing.T, check validate.Check, value string) string {
	t.Helper()
	check.Key = "k"
	problems := compile(t, check).Judge(object.Content{Data: map[string][]byte{"k": []byte(value)}}, now, now).Problems
	if len(problems) == 0 {
		return ""
	}
	require.Len(t, problems, 1)
	require.Equal(t, "k", problems[0].Key)
	return problems[0].Message
}

func compile(t testing.TB, checks ...validate.Check) *validate.Validator {
	t.Helper()
	require.Empty(t, validate.Checks(checks).Validate(nil))
	v, err := validate.Compile(checks)
	require.NoError(t, err)
	return v
}

// bomb is a few lines of YAML that stand for a billion values.
func bomb() string {
	lines := []string{"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"}
	for i := range 9 {
		from, to := string(rune('0'+i)), string(rune('1'+i))
		lines = append(lines, "a"+to+": &a"+to+" ["+strings.Repeat("*a"+from+", ", 10)+"]")
	}
	return strings.Join(lines, "\n")
}

func TestASchemaIsChecked(t *testing.T) {
	settings := `{"type": "object", "required": ["replicas"], "additionalProperties": false, "properties": {
		"replicas": {"type": "integer", "minimum": 1},
		"level": {"enum": ["debug", "info"]},
		"url": {"format": "uri"},
		"limits": {"additionalProperties": {"type": "number"}},
		"hosts": {"items": {"pattern": "^[a-z]+$"}},
		"tls": {"anyOf": [{"type": "boolean"}, {"type": "string"}]}}}`
	const at = "does not match its schema at "
	for name, test := range map[string]struct {
		is    validate.Format
		value string
		want  string
	}{
		"a document that matches":      {"", "replicas: 2\nlevel: info\nlimits: {cpu: 0.5}\nhosts: [a]\ntls: yes\n", ""},
		"JSON is YAML":                 {"", `{"replicas": 2}`, ""},
		"TOML, if the check says so":   {validate.TOML, "replicas = 2\n", ""},
		"TOML that does not match":     {validate.TOML, "replicas = 2020-01-01\n", at + "/replicas: type, must be integer"},
		"not even YAML":                {"", "replicas: [", "is not valid YAML (near line 1)"},
		"an empty document":            {"", "", at + "/: type, must be object"},
		"two documents":                {"", "replicas: 1\n---\nreplicas: 1\n", "holds several YAML documents; its schema describes one"},
		"a property that is missing":   {"", "level: info\n", at + "/: required, lacks replicas"},
		"a value of another type":      {"", "replicas: hunter22\n", at + "/replicas: type, must be integer"},
		"a value that is too small":    {"", "replicas: 0\n", at + "/replicas: minimum"},
		"a value outside of a list":    {"", "replicas: 1\nlevel: hunter22\n", at + "/level: enum"},
		"a value of another form":      {"", "replicas: 1\nurl: '://hunter22'\n", at + "/url: format"},
		"a value that breaks patterns": {"", "replicas: 1\nhosts: [a, hunter22]\n", at + "/hosts/1: pattern"},
		"a choice":                     {"", "replicas: 1\ntls: 22\n", at + "/tls: anyOf"},
		"a name that nobody knows":     {"", "replicas: 1\nlimits: {hunter22: x}\n", at + "/limits/*: type, must be number"},
		"a property too many":          {"", "replicas: 1\nhunter22: x\n", at + "/: additionalProperties, has a property that is not in the schema"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, messageOf(t, validate.Check{Is: test.is, Schema: schema(t, settings)}, test.value))
		})
	}
}

func schema(t testing.TB, text string) map[string]any {
	t.Helper()
	var read map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &read))
	return read
}

func TestTheTimeOfACertificateIsJudgedAsOfWhenItWasWrittenAndNow(t *testing.T) {
	valid := certificate(t, -time.Hour, time.Hour)
	from, end := now.Add(-time.Hour), now.Add(time.Hour)
	const notYet, hasExpired, soon = "is not valid before 2026-05-01T11:00:00Z", "has expired", "expires in less than 30m0s"
	for sentence, test := range map[string]struct {
		written, now        time.Time
		minimum             time.Duration
		problem, warning    string
		validFrom, judgedAt time.Time
	}{
		"valid all the time":                    {written: now, now: now, judgedAt: end.Add(1)},
		"not valid yet":                         {written: from.Add(-2), now: from.Add(-1), problem: notYet, validFrom: from, judgedAt: from},
		"valid since then":                      {written: from.Add(-2), now: from, judgedAt: end.Add(1)},
		"valid to the end":                      {written: now, now: end, judgedAt: end.Add(1)},
		"expired since then":                    {written: now, now: end.Add(1), warning: hasExpired},
		"expired before":                        {written: end.Add(1), now: end.Add(2), problem: hasExpired},
		"long enough":                           {written: now, now: now, minimum: 30 * time.Minute, judgedAt: end.Add(1)},
		"long enough when it was written":       {written: now, now: end, minimum: 30 * time.Minute, judgedAt: end.Add(1)},
		"too short":                             {written: end.Add(-time.Minute), now: end, minimum: 30 * time.Minute, problem: soon},
		"never long enough, and not valid yet":  {written: from.Add(-2), now: from.Add(-1), minimum: 30 * time.Hour, problem: "expires in less than 30h0m0s"},
		"not valid yet, and expired in between": {written: from.Add(-2), now: end.Add(1), warning: hasExpired},
	} {
		t.Run(sentence, func(t *testing.T) {
			check := validate.Check{Key: "k", Is: validate.Certificate, MinValidity: &metav1.Duration{Duration: test.minimum}}
			v := compile(t, check).Judge(content(valid), test.written, test.now)
			require.Contains(t, v.String(), test.problem)
			require.Equal(t, test.problem == "", v.String() == "")
			require.Contains(t, v.Warning(), test.warning)
			require.Equal(t, test.warning == "", v.Warning() == "")
			require.Equal(t, test.validFrom, v.ValidFrom)
			require.Equal(t, test.judgedAt, v.Until)
			require.True(t, v.HoldsAt(test.now))
			require.False(t, !v.Until.IsZero() && v.HoldsAt(v.Until))
		})
	}
}

func TestContentIsValidFromTheTimeThatTheLastCertificateIs(t *testing.T) {
	first, last := certificate(t, time.Hour, 9*time.Hour), certificate(t, 2*time.Hour, 9*time.Hour)
	all := object.Content{Data: map[string][]byte{"a": []byte(first), "b": []byte(last), "c": []byte("{")}}
	is := func(key string, format validate.Format) validate.Check { return validate.Check{Key: key, Is: format} }
	v := compile(t, is("a", validate.Certificate), is("b", validate.Certificate)).Judge(all, now, now)
	require.Len(t, v.Problems, 2)
	require.Equal(t, now.Add(2*time.Hour), v.ValidFrom)
	require.Equal(t, now.Add(time.Hour), v.Until)
	v = compile(t, is("a", validate.Certificate), is("c", validate.YAML)).Judge(all, now, now)
	require.Len(t, v.Problems, 2)
	require.Zero(t, v.ValidFrom, "the rest does not pass by itself")
}

func TestAKeyThatIsMissingIsAProblem(t *testing.T) {
	v := compile(t, validate.Check{Key: "a", Is: validate.YAML}, validate.Check{Key: "a", Schema: map[string]any{}}, validate.Check{Key: "b", Is: validate.YAML})
	problems := v.Judge(object.Content{BinaryData: map[string][]byte{"b": []byte("x")}}, now, now).Problems
	require.Equal(t, []validate.Problem{{Key: "a", Message: "is missing"}}, problems)
	require.Equal(t, `key "a" is missing`, problems[0].String())
}

func TestWithoutChecksNothingIsWrong(t *testing.T) {
	v, err := validate.Compile(nil)
	require.NoError(t, err)
	require.Nil(t, v)
	require.Empty(t, v.Judge(object.Content{}, now, now))
}

func TestTheProblemsOfAnObjectAreFew(t *testing.T) {
	items := map[string]any{"items": map[string]any{"type": "object"}}
	problems := compile(t, validate.Check{Key: "k", Schema: items}).
		Judge(object.Content{Data: map[string][]byte{"k": []byte("[" + strings.Repeat("1, ", 1000) + "]")}}, now, now).Problems
	require.Len(t, problems, 5)
}

// What would take hours ends with a problem, or go test ends it.
func TestTheWorkIsBounded(t *testing.T) {
	doubling := map[string]any{"d60": map[string]any{"minimum": 1}}
	for i := range 60 {
		ref := map[string]any{"$ref": "#/$defs/d" + strconv.Itoa(i+1)}
		doubling["d"+strconv.Itoa(i)] = map[string]any{"anyOf": []any{ref, ref}}
	}
	choices := make([]any, 5000)
	for i := range choices {
		choices[i] = i
	}
	deep := map[string]any{"$defs": map[string]any{"n": map[string]any{"items": map[string]any{"oneOf": []any{
		map[string]any{"$ref": "#/$defs/n"}, map[string]any{"$ref": "#/$defs/n"},
	}}}}, "$ref": "#/$defs/n"}
	for name, test := range map[string]struct {
		check validate.Check
		value string
		want  string
	}{
		"too many values":            {validate.Check{Is: validate.JSON}, "[" + strings.Repeat("0,", 200_000) + "0]", "has more than 100000 values and lines, counted by line breaks and the characters , [ { : - ?; split it (line 1)"},
		"references that double":     {validate.Check{Schema: map[string]any{"$ref": "#/$defs/d0", "$defs": doubling}}, "0", "takes too long to compare with its schema"},
		"references in deep values":  {validate.Check{Schema: deep}, strings.Repeat("[", 90) + strings.Repeat("]", 90), "takes too long to compare with its schema"},
		"long lists of choices":      {validate.Check{Schema: map[string]any{"items": map[string]any{"enum": choices}}}, "[" + strings.Repeat("9999, ", 90_000) + "]", "takes too long to compare with its schema"},
		"a large pattern in schemas": {validate.Check{Schema: map[string]any{"pattern": "(x?){900}y"}}, strings.Repeat("x", 1<<20-1), "takes too long to compare with its schema"},
		"a large pattern":            {validate.Check{Is: validate.Regex, Pattern: "(x?){900}y"}, strings.Repeat("x", 1<<20-1), "is too large to match against its pattern"},
		"many unique items":          {validate.Check{Schema: map[string]any{"uniqueItems": true}}, "[" + strings.Repeat("{}, ", 40_000) + "]", "does not match its schema at /: uniqueItems"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, messageOf(t, test.check, test.value))
		})
	}
}

// A Validator is used by several requests at once.
func TestValidatorsWorkConcurrently(t *testing.T) {
	v := compile(t, validate.Check{Key: "k", Schema: map[string]any{"type": "integer"}}, validate.Check{Key: "k", Is: validate.Regex, Pattern: "[a-z]"})
	want := v.Judge(content("x"), now, now).Problems
	results := make(chan []validate.Problem)
	for range 8 {
		go func() { results <- v.Judge(content("x"), now, now).Problems }()
	}
	for range 8 {
		require.Equal(t, want, <-results)
	}
}

func content(value string) object.Content {
	return object.Content{Data: map[string][]byte{"k": []byte(value)}}
}

// keyPair returns a certificate that is valid now, and its private key.
func keyPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

func TestACertificateAndAnothersPrivateKeyAreNotValid(t *testing.T) {
	certificate, key := keyPair(t)
	_, other := keyPair(t)
	checks := validate.Checks{{Key: "tls.crt", Is: validate.Certificate, PrivateKey: "tls.key"}}
	require.Empty(t, checks.Validate(field.NewPath("validate")))
	validator, err := validate.Compile(checks)
	require.NoError(t, err)
	for name, test := range map[string]struct{ key, want string }{
		"its own":   {key, ""},
		"another's": {other, "does not belong to the private key in tls.key"},
		"none":      {"", "lacks its private key, tls.key"},
		"not a key": {"x", "does not belong to the private key in tls.key"},
	} {
		t.Run(name, func(t *testing.T) {
			content := object.Content{Data: map[string][]byte{"tls.crt": []byte(certificate)}}
			if test.key != "" {
				content.Data["tls.key"] = []byte(test.key)
			}
			problems := validator.Judge(content, now, now).Problems
			if test.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Equal(t, test.want, problems[0].Message)
		})
	}
}
