package permission

// NoSurfaceText is the beginning of the text of a denial without a question.
const NoSurfaceText = noApprovalSurfaceText
