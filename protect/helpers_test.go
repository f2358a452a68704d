package protect

import "github.com/headwater-k8s/headwater/protect/internal/protecttest"

const alice = "alice"

func identified() *Identity {
	identity := &Identity{}
	identity.Set(protecttest.HeadwaterUser)
	return identity
}
