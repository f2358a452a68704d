package refs

// CompareObjectAndMode is exported for tests.
var CompareObjectAndMode = compareObjectAndMode
