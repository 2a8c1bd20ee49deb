package natsproto

// Methods that the header [HeaderMethod] names, of the operations that have several.
const (
	MethodGetParameters       = "GetParameters" // of OpCommand
	MethodConfigureThresholds = "ConfigureThresholds"
	MethodGetInformation      = "GetInformation" // of OpInfo
	MethodStatus              = "Status"         // of OpAdmin
	MethodExplain             = "Explain"
	MethodRecord              = "Record"
)
