# Exit code 2 denies the call, and the model receives stderr as the reason.
case $(cat) in
*"git push --force"*) echo "a force push needs a person" >&2; exit 2 ;;
esac
