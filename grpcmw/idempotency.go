package grpcmw

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// IdempotentMethods returns the methods of the services in files whose option
// idempotency_level promises what level does, or more: with NO_SIDE_EFFECTS the methods
// that say so, and with IDEMPOTENT those and the ones that say IDEMPOTENT. With
// IDEMPOTENCY_UNKNOWN, which promises nothing, it returns none.
//
//	methods := grpcmw.IdempotentMethods(descriptorpb.MethodOptions_NO_SIDE_EFFECTS, stockpb.File_stock_proto)
//
// The names have the form /package.Service/Method and are sorted, each once. Streaming
// methods are among them. The option is a promise by the author of the service that a
// method may be carried out many times; whether it may be sent twice for the sake of
// latency is the caller's decision still.
func IdempotentMethods(level descriptorpb.MethodOptions_IdempotencyLevel, files ...protoreflect.FileDescriptor) []string {
	var names []string
	for _, file := range files {
		services := file.Services()
		for i := range services.Len() {
			methods := services.Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				if promises(m, level) {
					names = append(names, "/"+string(m.Parent().FullName())+"/"+string(m.Name()))
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// promises reports whether m has the option idempotency_level, and it says level or
// more.
func promises(m protoreflect.MethodDescriptor, level descriptorpb.MethodOptions_IdempotencyLevel) bool {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	if !ok {
		return false
	}
	switch own := options.GetIdempotencyLevel(); level {
	case descriptorpb.MethodOptions_NO_SIDE_EFFECTS:
		return own == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
	case descriptorpb.MethodOptions_IDEMPOTENT:
		return own == descriptorpb.MethodOptions_NO_SIDE_EFFECTS || own == descriptorpb.MethodOptions_IDEMPOTENT
	}
	return false
}
