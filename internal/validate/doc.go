// Package validate decides whether the content of a source looks as its rule
// says.
//
//	Checks ──Compile──▶ Validator.Judge(content, written, now) ──▶ Verdict
//
// A Problem names the key and what is wrong, and never a byte of the value: the
// content may be that of a Secret, and parsers quote what they cannot read. The
// work is bounded, whatever the content or the configuration holds. The package
// is pure; the caller passes the time.
package validate
