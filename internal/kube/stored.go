package kube

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Stored is what the API server stored of a write: admission may change what was sent.
type Stored struct {
	*object.Full

	// AsSent is true if it has exactly the labels, annotations and content that were sent.
	// Full is then what was sent, with the UID and resourceVersion of what was stored.
	AsSent bool
}

var encoder = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// encode returns o in protobuf.
func encode(o *object.Full) ([]byte, error) {
	sent := o.ToAPI()
	sent.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(o.Kind)))
	memory, _ := runtime.AllocatorPool.Get().(*runtime.Allocator)
	defer runtime.AllocatorPool.Put(memory)
	var body bytes.Buffer
	err := encoder.EncodeWithAllocator(sent, &body, memory)
	return body.Bytes(), err
}

// buffers holds buffers. A change of a source brings thousands of answers, of which almost
// all say what was sent: they are compared with that, and not decoded.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readStored reads and closes the answer to a write of o, which was sent as body.
func readStored(answer io.ReadCloser, o *object.Full, body []byte) (Stored, error) {
	defer func() { _ = answer.Close() }()
	buffer, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(answer); err != nil {
		return Stored{}, fmt.Errorf("the API server stored it, but its answer broke off: %w", err)
	}
	if stored, understood := parse(buffer.Bytes()); understood && stored.isAsSent(body) {
		asSent := *o
		asSent.UID, asSent.ResourceVersion = types.UID(stored.uid), string(stored.version)
		return Stored{&asSent, true}, nil
	}
	decoded, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), buffer.Bytes())
	if err != nil {
		return Stored{}, errNoObject
	}
	full, err := object.FromAPI(decoded)
	return Stored{Full: full}, err
}

// errNoObject leaves out why, because that may quote the answer.
var errNoObject = errors.New("the API server stored it, but its answer is no object")

// parsed are parts of a Secret or ConfigMap in protobuf. What is equal is encoded equally:
// maps in the order of their keys.
type parsed struct {
	// marks are the labels and annotations, content is all but metadata.
	kind, marks, content, encoding, uid, version []byte
}

func (p parsed) isAsSent(body []byte) bool {
	sent, understood := parse(body)
	return understood && bytes.Equal(p.kind, sent.kind) && bytes.Equal(p.marks, sent.marks) &&
		bytes.Equal(p.content, sent.content) && bytes.Equal(p.encoding, sent.encoding)
}

// parse finds the parts of body. The numbers are those of runtime.Unknown, of both kinds and
// of ObjectMeta in the files generated.proto of Kubernetes, where they never change.
func parse(body []byte) (p parsed, understood bool) {
	unknown, isProtobuf := bytes.CutPrefix(body, []byte("k8s\x00"))
	first, kind, unknown := cut(unknown)
	second, raw, encoding := cut(unknown)
	third, metadata, content := cut(raw)
	p.kind, p.content, p.encoding = kind, content, encoding
	var marks []byte
	for len(metadata) > 0 {
		number, value, rest := cut(metadata)
		switch number {
		case 0:
			return p, false
		case 5:
			p.uid = value
		case 6:
			p.version = value
		case 11, 12:
			if marks == nil {
				marks = metadata
			}
			p.marks = marks[:len(marks)-len(rest)]
		}
		metadata = rest
	}
	return p, isProtobuf && first == 1 && second == 2 && third == 1
}

// cut returns the number and value of the first field of message, and the other fields. The
// number is 0 if it does not understand the field.
func cut(message []byte) (number uint64, value, rest []byte) {
	tag, n := binary.Uvarint(message)
	if n <= 0 {
		return 0, nil, nil
	}
	message = message[n:]
	size, n := binary.Uvarint(message)
	if n <= 0 {
		return 0, nil, nil
	}
	rest = message[n:]
	switch {
	case tag&7 == 0: // a number
		return tag >> 3, message[:n], rest
	case tag&7 == 2 && size <= uint64(len(rest)):
		return tag >> 3, rest[:size], rest[size:]
	}
	return 0, nil, nil
}
