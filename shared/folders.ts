/** The folder of the bucket for the service's own objects. The paths of callers cannot begin with it. */
export const OWN_FOLDER = '.holdfast';

export const STAGING_FOLDER = `${OWN_FOLDER}/staging/`;

export const REPORTS_FOLDER = `${OWN_FOLDER}/reports/`;
