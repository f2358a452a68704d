package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCutsNoCharacterInTwo(t *testing.T) {
	for sentence, tc := range map[string]struct {
		from  string
		limit int
		want  string
	}{
		"what is short stays":             {"short", 10, "short"},
		"what just fits stays":            {"short", 5, "short"},
		"what is longer is cut":           {"longer", 4, "long…"},
		"a character is not split":        {"zähe", 2, "z…"},
		"one of three bytes neither":      {"a€b", 3, "a…"},
		"nothing fits":                    {"some", 0, "…"},
		"nothing is there":                {"", 0, ""},
		"what is no text is cut as well":  {"\x80\x80\x80", 2, "…"},
		"a character that fits is whole":  {"zähe", 3, "zä…"},
		"bytes are counted, not as shown": {"äää", 6, "äää"},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, tc.want, Truncate(tc.from, tc.limit)) })
	}
}
