package health

import (
	"time"
)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // read only

type notes map[string]string
