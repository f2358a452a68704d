package optin

// Keys returns the only relevant keys; nil means all. It is exported for tests.
func (w Preferences) Keys() []string { return w.keys }

// WithKeys returns w with these as the only relevant keys. It is exported for tests.
func (w Preferences) WithKeys(keys ...string) Preferences {
	w.keys = keys
	return w
}
