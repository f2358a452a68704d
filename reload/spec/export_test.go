package spec

import "k8s.io/apimachinery/pkg/util/validation/field"

// CompileWindows is exported for tests.
var CompileWindows = compileWindows

// Validate is exported for tests.
func (w Window) Validate(at *field.Path) field.ErrorList { return w.validate(at) }
