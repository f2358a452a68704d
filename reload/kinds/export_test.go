package kinds

// ResourceName is exported for tests.
func (k CustomKind) ResourceName() string { return k.resource() }
